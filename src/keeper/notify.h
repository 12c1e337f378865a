/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the service manager, as sd_notify(3) sends them, without its library. */
#ifndef GP_KEEPER_NOTIFY_H
#define GP_KEEPER_NOTIFY_H

/* "READY=1". Does nothing where nobody listens, and never waits. */
void gp_notify(const char *words);

#endif
