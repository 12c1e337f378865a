/* SPDX-License-Identifier: Apache-2.0 */
/* "Perhaps 'weight' is meant": the name that a wrong word resembles most. */
#ifndef GP_BASE_SUGGEST_H
#define GP_BASE_SUGGEST_H

struct gp_suggest {
	const char *word;
	const char *nearest; /* of those offered so far; NULL: the word resembles none */
	unsigned distance;
};

/* `word` and the names must outlive `s`. Then every name is offered, in any order. */
void gp_suggest_begin(struct gp_suggest *s, const char *word);
void gp_suggest_offer(struct gp_suggest *s, const char *name);

#endif
