/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One page over HTTP, /metrics, served in the control thread's loop. Whoever connects can only read
 * it: few at a time, none for long, and the page is made at most ten times a second.
 */
#ifndef GP_DAEMON_HTTP_H
#define GP_DAEMON_HTTP_H

#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "base/error.h"

struct gp_http;

struct gp_http_config {
	const struct sockaddr *address; /* port 0: any that is free */
	const char *type;               /* of the page */
	unsigned idle_s;                /* a silent connection is closed then; 0: 10 */
	void (*write)(FILE *out, void *arg);
	void *arg;
};

/* Listens, or says why not. `config` is copied, but for what `arg` and `type` point to. */
int gp_http_begin(sd_event *loop, const struct gp_http_config *config, struct gp_http **http,
                  struct gp_error *err);
void gp_http_end(struct gp_http *http); /* NULL is fine */

/* On which it listens. */
unsigned gp_http_port(const struct gp_http *http);

#endif
