/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the back ends' doctors: they report findings. */
#ifndef GP_GPU_FINDING_H
#define GP_GPU_FINDING_H

#include <stdarg.h>
#include <stdio.h>

#include "base/process.h"
#include "gpu/gpu.h"

struct gp_reporter {
	gp_finding_fn *say;
	void *arg;
};

__attribute__((format(printf, 5, 6))) static inline void gp_report(const struct gp_reporter *to,
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

/* Reports whether this process may attach to other processes. */
static inline void gp_report_rights(const struct gp_reporter *to)
{
	char scope = gp_yama_scope();

	if (scope == '3')
		gp_report(to, GP_FINDING_MISSING, "rights",
			  "boot with kernel.yama.ptrace_scope below 3",
			  "Yama (ptrace_scope 3) forbids all users to attach to processes");
	else if (gp_have_ptrace() && !gp_have_read_all())
		gp_report(to, GP_FINDING_WARNING, "rights", "also run with CAP_DAC_READ_SEARCH",
			  "gpreempt has the capability to attach to processes of all users, but "
			  "may not open their files");
	else if (gp_have_ptrace())
		gp_report(to, GP_FINDING_OK, "rights", NULL,
			  "gpreempt has the capabilities to attach to processes of all users");
	else if (scope && scope != '0')
		gp_report(to, GP_FINDING_MISSING, "rights", GP_RIGHTS_ADVICE,
			  "Yama (ptrace_scope %c) forbids attaching to other processes", scope);
	else
		gp_report(to, GP_FINDING_WARNING, "rights", GP_RIGHTS_ADVICE,
			  "may attach to processes of this user only");
}

#endif
