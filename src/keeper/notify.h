/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the service manager, as sd_notify(3) sends them, without libsystemd. */
#ifndef GP_KEEPER_NOTIFY_H
#define GP_KEEPER_NOTIFY_H

/* Sends a message such as "READY=1". Never blocks; does nothing without NOTIFY_SOCKET. */
void gp_notify(const char *message);

#endif
