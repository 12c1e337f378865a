/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt-simgpu: simulated GPUs in real time. The model of src/gpu/sim runs against the monotonic
 * clock: what happens in it happens at its own exact time, and is told as soon as this process is
 * woken for it.
 *
 *   device.c    a device: time passes, its state is published, who controls it is woken
 *   clients.c   who is connected, and goes
 *   packets.c   what they say: checked, and done
 *   server.c    the loop that waits for all of them
 *   report.c    what came of it all
 *
 * One thread. Nothing is allocated once it runs, and nothing waits for a client.
 */
#ifndef GP_SIM_SERVER_SIM_SERVER_H
#define GP_SIM_SERVER_SIM_SERVER_H

#include <sys/types.h>

#include "base/error.h"
#include "sim/model/sim_gpu.h"
#include "gpu/simclient/sim_wire.h"

struct server;

struct client {
	struct server *server;
	int fd;        /* -1: a free place */
	bool gone;     /* to be closed at the end of the round */
	bool is_known; /* has said hello */
	enum gp_simgpu_role role;
	pid_t pid;
	uid_t uid;
	uint64_t start_time;
	uint64_t since_ns;
	struct device *device;
	uint32_t slot;    /* a program's */
	uint32_t number;  /* a controller's */
	int event_fd;     /* -1: none */
	uint64_t serial;  /* of its last packet ... */
	bool is_answered; /* ... whose effect is published */
};

/* A context's place, beside what the model knows of it. */
struct place {
	struct client *program; /* NULL: nobody */
	uint64_t key;
	uint64_t memory;
	char name[32];
	uint32_t own_slice_us;
	int32_t hold_failed, slice_failed;
	bool to_restore; /* as soon as there is room for the calls */
	uint64_t scheduled, on_at_ns, off_at_ns;
};

struct device_counts {
	uint64_t programs; /* that came */
	uint64_t most;     /* at one time */
	uint64_t requests;
	uint64_t holds, releases, slices;
};

struct device {
	struct server *server;
	uint32_t number;
	uint64_t origin_ns;  /* when the model's time began */
	uint64_t slipped_ns; /* that it could not keep up with */
	struct gp_sim *sim;
	struct gp_simgpu_state *state;
	int state_fd;
	bool touched; /* since it was last published */
	bool has_news;
	uint32_t programs;
	uint32_t to_restore; /* places */
	struct place place[GP_SIMGPU_CONTEXTS];
	struct client *controller[GP_SIMGPU_CONTROLLERS];
	struct device_counts counts;
};

struct gp_sim_server_config {
	const char *path; /* of the socket; NULL: none, packets are handed in */
	const struct gp_sim_device *model;
	const char *model_name;
	uint32_t devices;
	uint64_t seed;
};

struct server {
	struct gp_sim_server_config config;
	uid_t uid;
	uint64_t began_ns;
	uint64_t next_key;
	int epoll_fd, listen_fd, timer_fd, signal_fd, spare_fd;
	uint32_t ndevices;
	struct device *device;
	uint32_t nclients;
	struct client *client;
	bool any_gone;
	uint64_t wrong; /* packets that nobody can read */
	struct gp_action action[GP_SIMGPU_CONTEXTS];
	union {
		uint32_t kind;
		struct gp_simgpu_hello hello;
		struct gp_simgpu_submit submit;
		struct gp_simgpu_control control;
	} packet;
};

/* ---- server.c ---------------------------------------------------------------------------------
 */

/* 0 or -errno with a sentence. What cannot be made is undone. */
int gp_sim_server_new(const struct gp_sim_server_config *config, struct server **server,
                      struct gp_error *err);
void gp_sim_server_free(struct server *s);

/* Until a signal asks for the end. */
int gp_sim_server_run(struct server *s);

/* After packets: time passes everywhere, everything is told, who is gone is dropped. */
void gp_sim_server_settle(struct server *s);

/* ---- device.c ---------------------------------------------------------------------------------
 */

int gp_sim_device_init(struct device *d, struct server *s, uint32_t number, struct gp_error *err);
void gp_sim_device_free(struct device *d);

/* When it wants to be woken, on the monotonic clock; GP_NEVER. */
uint64_t gp_sim_device_next_ns(const struct device *d);

/* Lets time pass up to now: before anything is asked of it. */
void gp_sim_device_advance(struct device *d);

/* Publishes what has changed, answers its controllers, and wakes them if there is news. */
void gp_sim_device_publish(struct device *d);

/* A batch of holds, releases or slices: one call. What is refused stands in the state. */
void gp_sim_device_act(struct device *d, enum gp_simgpu_kind kind, struct gp_action *action,
                       unsigned n);
/* Released, and its own slice again, sooner or later. */
void gp_sim_device_restore(struct device *d, uint32_t slot);

/* ---- clients.c --------------------------------------------------------------------------------
 */

/* NULL: there is no place. The socket is the client's from here on, and closed with it. */
struct client *gp_sim_client_add(struct server *s, int fd);
void gp_sim_client_end(struct client *c); /* at the end of the round */
void gp_sim_client_drop(struct client *c);
void gp_sim_clients_accept(struct server *s);

/* Without waiting; who does not read what we say is dropped. */
void gp_sim_client_send(struct client *c, const void *data, size_t size);

/* 0 or -errno with a sentence for it. */
int gp_sim_client_becomes_program(struct server *s, struct client *c, struct device *d,
                                  const struct gp_simgpu_hello *hello, struct gp_error *err);
int gp_sim_client_becomes_controller(struct server *s, struct client *c, struct device *d,
                                     struct gp_error *err);

/* ---- packets.c --------------------------------------------------------------------------------
 */

/* Reads, and does what is said. */
void gp_sim_client_receive(struct server *s, struct client *c);

/* The one in s->packet. */
void gp_sim_client_packet(struct server *s, struct client *c, size_t size);

/* ---- report.c ---------------------------------------------------------------------------------
 */

void gp_sim_server_report(struct server *s, bool json);

#endif
