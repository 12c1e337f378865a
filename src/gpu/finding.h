/* SPDX-License-Identifier: Apache-2.0 */
/* For the doctors of the back ends: how they say what they find. */
#ifndef GP_GPU_FINDING_H
#define GP_GPU_FINDING_H

#include <stdarg.h>
#include <stdio.h>

#include "base/process.h"
#include "gpu/gpu.h"

struct gp_teller {
	gp_finding_fn *say;
	void *arg;
};

__attribute__((format(printf, 5, 6))) static inline void gp_say(const struct gp_teller *to,
                                                                enum gp_finding_level level,
                                                                const char *subject,
                                                                const char *advice,
                                                                const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	to->say(to->arg,
	        &(struct gp_finding){
			.level = level, .subject = subject, .text = text, .advice = advice});
}

#define GP_RIGHTS_ADVICE "run as root, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"

/* Whether other processes may be attached to. */
static inline void gp_say_rights(const struct gp_teller *to)
{
	char scope = gp_yama_scope();

	if (scope == '3')
		gp_say(to, GP_FINDING_MISSING, "rights",
		       "boot with kernel.yama.ptrace_scope below 3",
		       "Yama (ptrace_scope 3) forbids everybody to attach to processes");
	else if (gp_have_ptrace() && !gp_have_read_all())
		gp_say(to, GP_FINDING_WARNING, "rights", "run with CAP_DAC_READ_SEARCH, too",
		       "may attach to every process, but not open the files of other users'");
	else if (gp_have_ptrace())
		gp_say(to, GP_FINDING_OK, "rights", NULL, "may attach to every process");
	else if (scope && scope != '0')
		gp_say(to, GP_FINDING_MISSING, "rights", GP_RIGHTS_ADVICE,
		       "Yama (ptrace_scope %c) forbids attaching to other processes", scope);
	else
		gp_say(to, GP_FINDING_WARNING, "rights", GP_RIGHTS_ADVICE,
		       "may attach to processes of this user only");
}

#endif
