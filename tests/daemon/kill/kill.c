/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kill test: gpreemptd, its keeper, programs on a GPU and clients are killed at random moments,
 * and within a second everything that should run runs, the daemon has the right picture, nothing
 * leaks and no work is lost.
 *
 *     kill nvidia|amd|amd-old rounds [N]     GPREEMPT_SEED chooses other kills, GPREEMPT_SOAK=n
 *                                            makes n times as many
 *     kill nvidia|amd|amd-old hostile [N]    the same, with a driver that fails and lies meanwhile
 *     kill nvidia|amd|amd-old stopped        the daemon is stopped for 10 s
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "world.h"

#define ROUNDS (SANITIZED ? 10 : 50)

static unsigned long from_environment(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

static const struct gpu *find_gpu(const char *name)
{
	static const struct gpu *const gpus[] = {&gpu_nvidia, &gpu_amd, &gpu_amd_old, NULL};

	for (unsigned i = 0; gpus[i]; i++)
		if (!strcmp(gpus[i]->name, name))
			return gpus[i];
	return NULL;
}

int main(int argc, char **argv)
{
	static struct world w;
	const struct gpu *gpu = argc > 2 ? find_gpu(argv[1]) : NULL;
	unsigned long soak = from_environment("GPREEMPT_SOAK", 1);
	unsigned rounds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0)
				   : (unsigned)(ROUNDS * (soak ? soak : 1));

	if (!gpu) {
		fprintf(stderr, "kill nvidia|amd|amd-old rounds|hostile|stopped [N]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	w.seed = from_environment("GPREEMPT_SEED", 1);
	printf("%s, %s, seed %llu\n", argv[1], argv[2], (unsigned long long)w.seed);
	w.is_hostile = !strcmp(argv[2], "hostile");
	world_begin(&w, gpu);
	if (!strcmp(argv[2], "stopped"))
		case_stopped(&w);
	else
		case_rounds(&w, rounds);
	world_end(&w);
	return 0;
}
