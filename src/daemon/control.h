/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread: everything that is not a device's. It serves clients, knows the processes,
 * applies rules to newcomers, and passes on what devices have to tell. It waits in one sd-event
 * loop and nowhere else.
 */
#ifndef GP_DAEMON_CONTROL_H
#define GP_DAEMON_CONTROL_H

#include <systemd/sd-event.h>

#include "build_config.h"
#include "config/config.h"
#include "daemon/device_thread.h"
#include "daemon/procs.h"
#include "procinfo/procinfo.h"
#include "hold/devices.h"
#include "rpc/server/server.h"

/* What the command line says; the configuration file says the rest. */
struct gp_options {
	const char *config; /* NULL: the usual one, if it is there */
	const char *gpu;    /* a back end's name; NULL: as the configuration says */
	const char *policy; /* NULL: the same */
	bool wait;          /* for a GPU, where there is none yet */
};

/* A device's thread that is so late does not look any more. */
#define GP_STUCK_NS (3 * GP_NS_PER_S)

/* Everybody's interest in events: a bit each. */
enum gp_topic {
	GP_TOPIC_TASK_IN,
	GP_TOPIC_TASK_OUT,
	GP_TOPIC_HELD,
	GP_TOPIC_RELEASED,
	GP_TOPIC_POLICY,
	GP_TOPIC_EJECTED,
	GP_TOPIC_ACTION_FAILED,
	GP_TOPIC_UNDONE,
	GP_TOPIC_REFUSED,
	GP_TOPIC_ADMITTED,
	GP_TOPIC_LIMIT,
	GP_TOPIC_ATTR,
	GP_TOPIC_CONFIG,
	GP_TOPIC_KEEPER,
	GP_TOPICS,
};

extern const char *const gp_topic_names[GP_TOPICS];

struct gp_control {
	sd_event *loop;
	struct gp_options options;
	char config_path[256];
	struct gp_config *config;
	struct gp_reload *reload;     /* NULL: it was never read again */
	struct gp_config *began_with; /* what some keys still say; NULL: the same */
	struct gp_assignments *assignments;
	struct gp_undo_file *undo;
	struct gp_procinfo_pool *info;
	struct gp_rpc_server *server;
	struct gp_metrics *metrics; /* NULL: off */
	struct gp_sweeper *sweeper;

	struct gp_error no_device; /* why there is none yet, as it was last logged */
	unsigned nthreads;
	struct gp_device_thread *thread[GP_DEVICES_MAX];
	struct gp_policy_choice policy[GP_DEVICES_MAX]; /* as asked for */
	uint64_t told_ns[GP_DEVICES_MAX]; /* of the last task that came or went, as far as heard */
	bool behind[GP_DEVICES_MAX];      /* some that came or went were not heard of */
	int wake_fd;                      /* hosts have news */

	struct gp_procs procs;
	struct gp_gather *gathers;
	uint32_t wanted; /* events that hosts are to tell */

	uint64_t started_ns;
	uint64_t heartbeats;
	uint64_t heartbeat_ns;  /* of the last one */
	bool stuck;             /* a device's thread does not look any more */
	bool keeper_gone;       /* as last seen */
	uint64_t limits_passed; /* of GPU memory: how often */
	gid_t group;            /* members may do what root may; (gid_t)-1: there is none */
};

/* ---- control.c: life ---------------------------------------------------------------------------
 */

int gp_control_begin(struct gp_control *c, const struct gp_options *options, struct gp_error *err);
int gp_control_run(struct gp_control *c, struct gp_error *err);
void gp_control_end(struct gp_control *c);

/* ---- configure.c: the configuration ------------------------------------------------------------
 */

/* Reading it, which may take long: nothing of the daemon's is touched. */
struct gp_reading {
	const char *option; /* the command line's */
	bool had_file;      /* there was one before */
	unsigned nusers;    /* whose limits are wanted, with those of their groups */
	uid_t *user;
	struct gp_limit *limit;

	int code;
	struct gp_error err;
	char path[256]; /* "": none, these are the defaults */
	struct gp_config *config;
	gid_t group; /* members may do what root may; (gid_t)-1: there is none */
};
void gp_configuration_read(struct gp_reading *r);
void gp_configuration_use(struct gp_control *c, const struct gp_reading *r);
/* The first one. */
int gp_control_configure(struct gp_control *c, struct gp_error *err);
/* Which policy a device shall have: somebody's choice at run time, the command line's, the
 * configuration's. */
int gp_control_policy(struct gp_control *c, const char *device, struct gp_policy_choice *choice,
                      struct gp_error *err);

/* ---- reload.c: the configuration, again --------------------------------------------------------
 */

/* Begins to read it; when it is wrong, the old one stays. `call`, if any, is answered then. 0 or
 * -errno: it is not answered. */
int gp_control_reload(struct gp_control *c, struct gp_rpc_call *call);
void gp_reload_end(struct gp_control *c);

/* ---- beats.c: what is done again and again -----------------------------------------------------
 */

int gp_heartbeat_begin(struct gp_control *c);
/* What the source is for comes before what clients ask. It is the loop's from then on. */
int gp_before_clients(sd_event_source *source);

/* restart.c: says in the log which keys have another value that holds only after a restart. */
void gp_warn_of_restart(const struct gp_config *old, const struct gp_config *new);

/* ---- sweeper.c: records of processes that have ended -------------------------------------------
 */

int gp_sweeper_begin(struct gp_control *c, struct gp_error *err);
void gp_sweeper_end(struct gp_control *c);

/* ---- newcomers.c: what processes are -----------------------------------------------------------
 */

int gp_rules_begin(struct gp_control *c, struct gp_error *err);
/* It has its first task: rules say what it is, unless somebody did, and how much memory it may use,
 * whoever said anything. */
void gp_process_arrived(struct gp_control *c, struct gp_proc *proc);
/* Now and then: asks again for what could not be read in time. */
void gp_rules_retry(struct gp_control *c, uint64_t now_ns);
/* The rules have changed. */
void gp_rules_reapply(struct gp_control *c);

/* ---- bounds.c: how high users' words stand ------------------------------------------------------
 */

/* Somebody said what it is, and no administrator. */
bool gp_is_users_word(const struct gp_proc *proc);
/* There is a new configuration. Asks for the groups of users, so it may wait. */
void gp_bounds_renew(struct gp_control *c);
/* The same in three steps: who, which may wait for a directory, and true if that was all. */
int gp_bounds_users(const struct gp_control *c, struct gp_reading *r);
struct gp_limit gp_bounds_of(const struct gp_config *config, uid_t uid);
bool gp_bounds_set(struct gp_control *c, const uid_t *user, const struct gp_limit *limit,
                   unsigned n);
/* Takes from what a user said of it what is neither given to it nor within the user's limit. */
void gp_bound(struct gp_control *c, struct gp_proc *proc, const struct gp_procinfo *info);

/* set.c: proc->attr to all its tasks, and to those who want to know. `g` may be NULL. */
void gp_apply_attr(struct gp_control *c, struct gp_gather *g, const struct gp_proc *proc);

/* ---- gather.c: orders to several devices, and one answer ---------------------------------------
 */

struct gp_gather {
	struct gp_control *control;
	struct gp_rpc_call *call; /* NULL: nobody waits */
	unsigned left;            /* answers that have not come */
	unsigned done;            /* that say it is done */
	int status;               /* the first that failed */
	char text[256];
	uint64_t did; /* devices that did it, a bit each */
	pid_t pid;    /* whom it is about; 0 = nobody */
	uint64_t start_time;
	bool first;                     /* of a hold: nobody else held it before */
	struct gp_policy_choice policy; /* which it is about ... */
	char policy_text[256];          /* ... and as text, if a restart is to find it; or "" */
	/* All answers are here. Answers the call; the gather is freed afterwards. */
	void (*finish)(struct gp_gather *g);
	struct gp_gather *next, *prev;
};

/* NULL: no memory, the call was failed. */
struct gp_gather *gp_gather_new(struct gp_control *c, struct gp_rpc_call *call,
                                void (*finish)(struct gp_gather *g));
/* Counts one that cannot be sent as failed. */
void gp_gather_command(struct gp_gather *g, struct gp_device_thread *thread,
                       struct gp_command *command);
/* All orders were given: finishes at once when there are none, or none that wait. */
void gp_gather_go(struct gp_gather *g);
void gp_gather_answer(unsigned device, const struct gp_answer *answer);
/* The daemon ends. */
void gp_gathers_end(struct gp_control *c);

/* ---- news.c: what devices tell, and what people are told ---------------------------------------
 */

int gp_events_begin(struct gp_control *c);
/* Starts an event; NULL: nobody wants it. The caller adds to it and hands it to gp_events_publish.
 */
struct json_object *gp_event_new(struct gp_control *c, enum gp_topic topic);
void gp_event_add_proc(struct json_object *event, const struct gp_proc *proc);
void gp_events_publish(struct gp_control *c, enum gp_topic topic, struct json_object *event);
/* Asks the hosts for what somebody subscribed to. */
void gp_events_want(struct gp_control *c);
/* What was not heard of is read from pictures, as soon as they are new enough. */
void gp_events_catch_up(struct gp_control *c);
/* Looks at GPU memory against limits. */
void gp_events_check_limits(struct gp_control *c);

/* ---- render.c: pictures as JSON ----------------------------------------------------------------
 */

struct json_object *gp_render_device(struct gp_control *c, unsigned device);
struct json_object *gp_render_task(struct gp_control *c, unsigned device,
                                   const struct gp_task_stats *task, uint64_t mono_ns);

/* ---- methods -----------------------------------------------------------------------------------
 */

typedef int gp_method_fn(void *arg, struct gp_rpc_call *call, struct json_object *params);

/* show.c: of this process. */
uint64_t gp_resident_bytes(void);
uint64_t gp_cpu_ns(void);

gp_method_fn gp_method_devices, gp_method_tasks, gp_method_stats;      /* show.c */
gp_method_fn gp_method_set;                                            /* set.c */
gp_method_fn gp_method_hold, gp_method_release, gp_method_release_all; /* steer.c */
gp_method_fn gp_method_policy, gp_method_reload;                       /* policy.c */
gp_method_fn gp_method_subscribe;                                      /* subscribe.c */
gp_method_fn gp_method_hint, gp_method_mark;                           /* hint.c */

/* methods.c: the tables, and who asks. */
extern const struct gp_rpc_method gp_control_methods[], gp_hint_methods[];
extern const unsigned gp_control_nmethods, gp_hint_nmethods;

/* may.c: rights. Whether this caller may do everything: an administrator, and not root of a
 * container. */
bool gp_administers(const struct gp_control *c, const struct gp_rpc_peer *peer);

/* What the configuration says of how high this caller may raise processes. */
struct gp_limit gp_written_limit(const struct gp_control *c, const struct gp_rpc_peer *peer);

/* 0, or -EPERM with a sentence. */
/* `proc` NULL: about everybody. `err` may be NULL. */
int gp_may_read(struct gp_control *c, const struct gp_rpc_call *call, const struct gp_proc *proc,
                struct gp_error *err);
int gp_may_set(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
               const struct gp_task_attr *to, struct gp_error *err);
int gp_may_hold(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
                bool release, struct gp_error *err);
int gp_may_govern(struct gp_control *c, struct gp_rpc_call *call, struct gp_error *err);

/* The target of a call as a process that is known from now on; NULL: answered with why not. */
struct gp_proc *gp_method_target(struct gp_control *c, struct gp_rpc_call *call,
                                 struct json_object *params);

#endif
