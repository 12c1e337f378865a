/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known name that is most similar to a misspelled word, for messages such as "perhaps
 * 'weight' is meant". */
#ifndef GP_BASE_SUGGEST_H
#define GP_BASE_SUGGEST_H

struct gp_suggest {
	const char *word;
	const char *nearest; /* among the offered names; NULL: no name is similar */
	unsigned distance;
};

/* Start with gp_suggest_begin, then offer every name in any order. `word` and the names must
 * outlive `s`. */
void gp_suggest_begin(struct gp_suggest *s, const char *word);
void gp_suggest_offer(struct gp_suggest *s, const char *name);

#endif
