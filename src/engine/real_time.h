/* SPDX-License-Identifier: Apache-2.0 */
/* Drives an engine in real time, in the thread that owns the device. It ticks when the engine is
 * due and when the back end signals an event. */
#ifndef GP_ENGINE_REAL_TIME_H
#define GP_ENGINE_REAL_TIME_H

#include "engine/engine.h"

/*
 * Returns 0 when `stop_fd` becomes readable, or -errno. `after_tick`, if not NULL, is called in the
 * same thread after every tick; a return value other than 0 ends the loop and is returned.
 */
int gp_drive(struct gp_engine *engine, struct gp_gpu *gpu, int stop_fd,
	     int (*after_tick)(void *arg, uint64_t now_ns), void *arg);

#endif
