/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics for Prometheus over HTTP on the loopback interface; off unless configured. */
#ifndef GP_DAEMON_METRICS_PAGE_H
#define GP_DAEMON_METRICS_PAGE_H

#include "daemon/control.h"

int gp_metrics_begin(struct gp_control *c, struct gp_error *err);
void gp_metrics_end(struct gp_control *c);

#endif
