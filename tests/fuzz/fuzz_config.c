/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a configuration; with what is accepted, processes are matched that call themselves
 * like the file.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/rights.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Some names exist and others do not. The system is not asked. */
static int find(const char *name, uint32_t *id)
{
	*id = (uint32_t)(unsigned char)name[0];
	return strchr("abcrsg", name[0]) ? 0 : -ENOENT;
}

static const struct gp_config_names names = {find, find};

/* Values that users control raise no process above the limit, with any file. */
static void check_match(const struct gp_config *c, const struct gp_procinfo *info)
{
	struct gp_limit limit = gp_config_limit_of(c, info);
	struct gp_match m;
	int r = gp_config_match(c, info, &m);

	if (r != (m.rule < 0 ? -ENOENT : 0) || m.rule >= (int)c->nrules)
		abort();
	if (!m.trusted && gp_limit_clamp(&limit, &m.attr))
		abort();
	if (info->known == GP_PROCINFO_ALL && m.rule < 0 && m.incomplete && c->nrules < 4)
		abort(); /* so few rules do not use up the steps */
}

static void match_all(const struct gp_config *c, const char *text, size_t size)
{
	static const gid_t groups[] = {'s', 'g'};
	size_t length = size < GP_PROCINFO_CMDLINE_MAX ? size : GP_PROCINFO_CMDLINE_MAX;
	char *words = strndup(text, length);
	struct gp_procinfo info = {
		.pid = 77,
		.start_time = 4711,
		.uid = {'a', 'a', 'a'},
		.gid = 'b',
		.ngroups = 2,
		.group = groups,
		.cgroup = words,
		.exe = words,
		.cmdline = words,
		.environ = text,
		.environ_size = size,
	};

	if (!words)
		return;
	memcpy(info.comm, words, strnlen(words, sizeof info.comm - 1));
	for (unsigned i = 0; i < 64; i++) {
		info.known = i == 63 ? GP_PROCINFO_ALL : GP_PROCINFO_ALL & ~(1u << i % 8);
		info.cgroup_trusted = i & 8;
		info.exe_trusted = i & 16;
		info.uid[1] = i & 32 ? 0 : 'a';
		check_match(c, &info);
	}
	free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct gp_error err = {0};
	struct gp_config *c;
	bool ignore;
	int r = gp_config_parse("fuzz.yaml", text, size, &names, &c, &err);

	if (r != err.code || !r != !err.text[0] || !r != !!c)
		abort(); /* a failure without its sentence */
	if (r)
		return 0;
	match_all(c, text, size);
	gp_config_device(c, "NVIDIA H200", &ignore);
	gp_config_free(c);
	return 0;
}
