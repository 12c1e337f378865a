/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpreempt-simgpu: simulated GPUs in real time. The model (src/sim/model) runs against the
 * monotonic clock. Events in the model have their own exact times; clients are notified as soon as
 * this process wakes up for them.
 *
 *   sim_device.c     a device: advances its time, publishes its state, wakes its controllers
 *   clients.c        connections: accept, roles, packets, close
 *   sim_server.c     the main loop, and statistics at the end
 *
 * There is one thread. Nothing is allocated while it runs, and it never waits for a client.
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
	int fd;        /* -1 = this entry is free */
	bool gone;     /* to be closed at the end of the loop's pass */
	bool is_known; /* it has sent a valid hello */
	enum gp_simgpu_role role;
	pid_t pid;
	uid_t uid;
	uint64_t start_time;
	uint64_t since_ns;
	struct device *device;
	uint32_t slot;    /* of a program */
	uint32_t number;  /* of a controller */
	int event_fd;     /* -1 = none */
	uint64_t serial;  /* of its last packet */
	bool is_answered; /* the effect of its last packet is published */
};

/* State of a context that the model does not have. */
struct context_slot {
	struct client *program; /* NULL = the slot is free */
	uint64_t key;
	uint64_t memory;
	char name[32];
	uint32_t own_slice_us;
	int32_t hold_failed, slice_failed;
	bool to_restore; /* gp_sim_device_restore waits for room for its calls */
	uint64_t scheduled, on_at_ns, off_at_ns;
};

struct device_counts {
	uint64_t programs; /* programs that connected */
	uint64_t most;     /* largest number at the same time */
	uint64_t requests;
	uint64_t holds, releases, slices;
};

struct device {
	struct server *server;
	uint32_t number;
	uint64_t origin_ns;  /* real time at which the model's time is 0 */
	uint64_t slipped_ns; /* time by which the model fell behind the clock */
	struct gp_sim *sim;
	struct gp_simgpu_state *state;
	int state_fd;
	bool touched; /* changed since it was last published */
	bool wake_controllers;
	uint32_t programs;
	uint32_t to_restore; /* number of slots with to_restore */
	struct context_slot slots[GP_SIMGPU_CONTEXTS];
	struct client *controller[GP_SIMGPU_CONTROLLERS];
	struct device_counts counts;
};

struct gp_sim_server_config {
	const char *path; /* of the socket; NULL = none, tests pass packets directly */
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
	uint64_t invalid; /* invalid packets */
	struct gp_action action[GP_SIMGPU_CONTEXTS];
	union {
		uint32_t kind;
		struct gp_simgpu_hello hello;
		struct gp_simgpu_submit submit;
		struct gp_simgpu_control control;
	} packet;
};

/* Defined in sim_server.c. */

/* Returns 0, or -errno with a message in `err`. On failure nothing is left behind. */
int gp_sim_server_new(const struct gp_sim_server_config *config, struct server **server,
		      struct gp_error *err);
void gp_sim_server_free(struct server *s);

/* Runs until SIGINT, SIGTERM or SIGHUP. */
int gp_sim_server_run(struct server *s);

/* Prints the statistics. */
void gp_sim_server_report(struct server *s, bool json);

/* To be called after packets: advances all devices, publishes changes, closes lost connections. */
void gp_sim_server_settle(struct server *s);

/* Defined in sim_device.c. */

int gp_sim_device_init(struct device *d, struct server *s, uint32_t number, struct gp_error *err);
void gp_sim_device_free(struct device *d);

/* The next event, on the monotonic clock; GP_NEVER = there is none. */
uint64_t gp_sim_device_next_ns(const struct device *d);

/* Advances the model to the current time. To be called before the model is used. */
void gp_sim_device_advance(struct device *d);

/* Publishes changes, answers controllers, and wakes them if something changed. */
void gp_sim_device_publish(struct device *d);

/* Executes a batch of holds, releases or slices as one call. Refusals are stored in the published
 * state. */
void gp_sim_device_act(struct device *d, enum gp_simgpu_kind kind, struct gp_action *action,
		       unsigned n);
/* Releases the context and restores its own slice, later if there is no room for the calls. */
void gp_sim_device_restore(struct device *d, uint32_t slot);

/* Defined in clients.c. */

/* Returns NULL if there is no free entry. On success the client owns `fd` and closes it. */
struct client *gp_sim_client_add(struct server *s, int fd);
void gp_sim_client_end(struct client *c); /* takes effect at the end of the loop's pass */
void gp_sim_client_drop(struct client *c);
void gp_sim_clients_accept(struct server *s);

/* Never blocks. A client that does not read is disconnected. */
void gp_sim_client_send(struct client *c, const void *data, size_t size);

/* Receives packets and executes them. */
void gp_sim_client_receive(struct server *s, struct client *c);

/* Executes the packet in s->packet. */
void gp_sim_client_packet(struct server *s, struct client *c, size_t size);

#endif
