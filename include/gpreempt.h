/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libgpreempt: the public C API of gpreempt.
 *
 * Every call is safe in any thread and leaves errno alone. A call that can fail returns 0 or
 * -errno. The library needs libc only, starts no thread and installs no signal handler.
 */
#ifndef GPREEMPT_H
#define GPREEMPT_H

#ifdef __cplusplus
extern "C" {
#endif

#define GPREEMPT_API __attribute__((visibility("default")))

/* The version of the library that was loaded, as "0.1.0". Never NULL, never freed. */
GPREEMPT_API const char *gpreempt_version(void);

/*
 * What a return value means: "Operation not permitted" for -EPERM, in English whatever the
 * locale. `code` is 0 or -errno; anything else gets a text that says it is unknown. Never NULL,
 * never freed, and stays valid after later calls.
 */
GPREEMPT_API const char *gpreempt_error_text(int code);

#ifdef __cplusplus
}
#endif

#endif
