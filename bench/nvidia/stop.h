/* SPDX-License-Identifier: Apache-2.0 */
/* SIGINT, SIGTERM and SIGHUP as something to wait for. A signal is the process's, hence no handle.
 */
#ifndef BENCH_STOP_H
#define BENCH_STOP_H

/* Blocks the signals and opens a signalfd. 0 or -errno. */
int stop_init(void);

/* Readable once a signal has come; -1 before stop_init. */
int stop_fd(void);

/* The signal that has come, or 0. */
int stop_signal(void);

/* In a new child, before exec: signals as the user's shell left them. */
void stop_forget(void);

#endif
