/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server with one page, /metrics, in the control thread's loop. Connections are limited in
 * number and time, and the page is rendered at most ten times per second.
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
	const struct sockaddr *address; /* port 0: any free port */
	const char *type;               /* content type of the page */
	unsigned idle_s; /* seconds after which an idle connection is closed; 0: 10 */
	void (*write)(FILE *out, void *arg);
	void *arg;
};

/* Starts the server. `config` is copied, except what `arg` and `type` point to. */
int gp_http_begin(sd_event *loop, const struct gp_http_config *config, struct gp_http **http,
		  struct gp_error *err);
void gp_http_end(struct gp_http *http); /* `http` may be NULL */

/* For tests: the port. */
unsigned gp_http_port(const struct gp_http *http);

#endif
