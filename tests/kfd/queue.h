/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a case or a peer, made and fed as the emulator's own load does it. */
#ifndef TESTS_KFD_QUEUE_H
#define TESTS_KFD_QUEUE_H

#include "cases.h"

/* Actions; a queue is named by its id. */

#define ON_GPU(type, gpu) ((long)(type) | (long)(gpu) << 8)
#define WITH(id, value)   ((long)(id) | (long)(value) << 16)

long make_queue(long type_and_gpu); /* its id */
long destroy_queue(long id);
long set_percent(long id_and_percent);
long submit_work(long id_and_packets); /* of 1 ms each */
long work_done(long id);               /* packets */
long work_is_right(long id);           /* 1: all of it is done, each once and in order; 0; waits */
long ring_address(long id);
long save_area_address(long id);
long waves_saved(long id); /* what the save area says: 1, or 0 */

/* What debuggers do with them. */

/* Ready to be debugged, with n AQL queues, of which none is NEW any more if `seen`. */
struct peer peer_start_queues(unsigned n, bool seen);
struct peer peer_start_new_queue(void);
struct peer peer_start_seen_queue(void);
struct peer peer_start_two_seen_queues(void);
long see_queues(long pid); /* a snapshot that clears EC_QUEUE_NEW: how many there are */
void say_suspend(pid_t pid, uint64_t clear, unsigned n, const uint32_t *ids); /* and the bits */
void say_resume(pid_t pid, unsigned n, const uint32_t *ids);

#endif
