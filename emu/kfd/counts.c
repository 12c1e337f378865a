/* SPDX-License-Identifier: Apache-2.0 */
/* How often what happened: the file `counts`. */
#include "kfd.h"

#define MAX_COUNTS 128u

static struct {
	char name[32];
	uint64_t value;
} counts[MAX_COUNTS];
static size_t ncounts;

void count_add(const char *name, uint64_t n)
{
	size_t i = 0;

	while (i < ncounts && strcmp(counts[i].name, name) != 0)
		i++;
	if (i == MAX_COUNTS)
		return;
	if (i == ncounts)
		snprintf(counts[ncounts++].name, sizeof(counts[0].name), "%s", name);
	counts[i].value += n;
}

void count_reset(void)
{
	ncounts = 0;
}

void counts_print(FILE *out, const char *format, const char *separator)
{
	for (size_t i = 0; i < ncounts; i++)
		fprintf(out, format, i ? separator : "", counts[i].name, counts[i].value);
}
