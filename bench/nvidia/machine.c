/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* The rest of the first line that begins so, blanks and a colon skipped. */
static void find_line(const char *path, const char *begin, char *out, size_t size)
{
	FILE *file = fopen(path, "r");
	char line[256];

	if (!file)
		return;
	while (fgets(line, sizeof line, file)) {
		const char *rest = line + strlen(begin);

		if (strncmp(line, begin, strlen(begin)) != 0)
			continue;
		rest += strspn(rest, " \t:");
		snprintf(out, size, "%.*s", (int)strcspn(rest, "\n"), rest);
		break;
	}
	fclose(file);
}

static void find_gpu(char *out, size_t size)
{
	glob_t found;

	if (!glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found))
		find_line(found.gl_pathv[0], "Model", out, size);
	globfree(&found);
}

void machine_describe(struct report *r)
{
	struct utsname u;
	time_t now = time(NULL);
	struct tm tm;
	char cpu[80] = "unknown CPU";

	find_line("/proc/cpuinfo", "model name", cpu, sizeof cpu);
	uname(&u);
	snprintf(r->machine, sizeof r->machine, "%ld x %s, %.8s %.32s %.16s",
	         sysconf(_SC_NPROCESSORS_ONLN), cpu, u.sysname, u.release, u.machine);
	find_line("/sys/module/nvidia/version", "", r->driver, sizeof r->driver);
	if (!r->driver[0])
		find_line("/proc/driver/nvidia/version", "NVRM version", r->driver,
		          sizeof r->driver);
	find_gpu(r->gpu, sizeof r->gpu);
	strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
}

void machine_keep_gpu(void)
{
	static const char *const file[] = {"/dev/nvidiactl", "/dev/nvidia0"};

	for (unsigned i = 0; i < 2; i++)
		if (open(file[i], O_RDWR | O_CLOEXEC) < 0)
			return; /* only slower then */
}
