/* SPDX-License-Identifier: Apache-2.0 */
#include "gpreempt.h"

#include "base/error.h"
#include "build_config.h"

const char *gpreempt_version(void)
{
	return GP_VERSION;
}

const char *gpreempt_error_text(int code)
{
	return gp_error_name(code);
}
