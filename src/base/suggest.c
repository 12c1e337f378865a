/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <string.h>

#define WORD_MAX       32 /* longer than any name; a longer word is similar to none */
#define DISTANCE_LIMIT 3  /* words at this distance or more are not similar */

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Levenshtein distance: letters to insert, remove or replace to turn one word into the other. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	unsigned n = (unsigned)strnlen(b, WORD_MAX);

	if (strnlen(a, WORD_MAX) == WORD_MAX)
		return WORD_MAX;
	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 0; a[i]; i++) {
		unsigned diagonal = row[0];

		row[0] = i + 1;
		for (unsigned j = 0; j < n; j++) {
			unsigned replaced = diagonal + (a[i] != b[j]);

			diagonal = row[j + 1];
			row[j + 1] = least(replaced, least(row[j], row[j + 1]) + 1);
		}
	}
	return row[n];
}

void gp_suggest_begin(struct gp_suggest *s, const char *word)
{
	*s = (struct gp_suggest){
		.word = word,
		.distance = least(DISTANCE_LIMIT, (unsigned)strnlen(word, WORD_MAX)),
	};
}

void gp_suggest_offer(struct gp_suggest *s, const char *name)
{
	unsigned d = distance(s->word, name);

	if (d < s->distance) {
		s->distance = d;
		s->nearest = name;
	}
}
