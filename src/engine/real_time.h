/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives an engine in real time: the thread that owns the device sits here. It looks when the
 * engine wants to, and when the back end has news.
 */
#ifndef GP_ENGINE_REAL_TIME_H
#define GP_ENGINE_REAL_TIME_H

#include "engine/engine.h"

/*
 * Returns 0 when `stop_fd` becomes readable, or -errno. `after_look`, if not NULL, is called in the
 * same thread after every look; what it returns other than 0 ends the drive, too.
 */
int gp_drive(struct gp_engine *engine, struct gp_gpu *gpu, int stop_fd,
             int (*after_look)(void *arg, uint64_t now_ns), void *arg);

#endif
