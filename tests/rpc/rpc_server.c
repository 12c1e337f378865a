/* SPDX-License-Identifier: Apache-2.0 */
/* The tests' server as a program: says where it listens, and ends with its standard input. */
#include "support/test.h"
#include "rpc_world.h"

int main(void)
{
	struct world w = {0};

	world_start(&w);
	printf("%s\n", w.path);
	fflush(stdout);
	while (getchar() != EOF)
		;
	world_stop(&w);
	return 0;
}
