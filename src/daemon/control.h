/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread: everything that no device thread does. It serves clients, knows the
 * processes, applies rules to new processes and publishes the events of the devices. It waits only
 * in its sd-event loop.
 */
#ifndef GP_DAEMON_CONTROL_H
#define GP_DAEMON_CONTROL_H

#include <systemd/sd-event.h>

#include "build_config.h"
#include "config/config.h"
#include "daemon/device_thread.h"
#include "daemon/log_limit.h"
#include "daemon/procs.h"
#include "procinfo/procinfo.h"
#include "hold/devices.h"
#include "rpc/server/server.h"

/* Options of the command line; they override the configuration file. */
struct gp_options {
	const char *config; /* NULL: the default path, if that file exists */
	const char *gpu;    /* name of a back end; NULL: as configured */
	const char *policy; /* NULL: as configured */
	bool wait;          /* if there is no GPU, wait for one */
};

/* Topics of events; a subscription has a bit for each. */
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
	GP_TOPIC_EVICTED,
	GP_TOPIC_RESTORED,
	GP_TOPIC_LIMIT,
	GP_TOPIC_ATTR,
	GP_TOPIC_CONFIG,
	GP_TOPIC_KEEPER,
	GP_TOPICS,
};

extern const char *const gp_topic_names[GP_TOPICS];

/* Where the policy of a device comes from. */
enum gp_policy_source { GP_POLICY_CONFIGURED, GP_POLICY_COMMAND_LINE, GP_POLICY_CHOSEN };

extern const char *const gp_policy_source_names[];

struct gp_policy_origin {
	enum gp_policy_source source;
	uid_t by;       /* with GP_POLICY_CHOSEN: the user, or GP_BY_UNKNOWN */
	uint64_t at_ns; /* likewise: CLOCK_REALTIME; 0 = not known */
};

struct gp_control {
	sd_event *loop;
	struct gp_options options;
	char config_path[256];
	struct gp_config *config;
	struct gp_reload *reload;         /* NULL: no reload yet */
	struct gp_config *initial_config; /* NULL: no reload yet, so `config` is it */
	struct gp_assignments *assignments;
	struct gp_undo_file *undo;
	struct gp_procinfo_pool *info;
	struct gp_rpc_server *server;
	struct gp_metrics *metrics; /* NULL: off */
	struct gp_sweeper *sweeper;

	struct gp_error no_device; /* why there is no device yet, as last logged */
	unsigned nthreads;
	struct gp_device_thread *thread[GP_DEVICES_MAX];
	struct gp_policy_choice policy[GP_DEVICES_MAX]; /* as requested */
	struct gp_policy_origin policy_origin[GP_DEVICES_MAX];
	uint64_t policies_key; /* gp_config_policies_key of the configuration in use */
	uint64_t last_task_event_ns[GP_DEVICES_MAX]; /* last TASK_IN or TASK_OUT */
	bool behind[GP_DEVICES_MAX];                 /* TASK_IN or TASK_OUT events were lost */
	int wake_fd; /* eventfd: a device thread has events or answers */

	struct gp_accounts accounts;
	struct gp_log_limit call_log; /* of calls of users */

	struct gp_procs procs;
	uint64_t leases; /* the last number; the first is the time, so that daemons share none */
	struct gp_gather *gathers;
	uint32_t wanted; /* the event kinds that device threads report */

	uint64_t started_ns;
	uint64_t heartbeats;
	uint64_t heartbeat_ns;  /* of the last heartbeat */
	bool stuck;             /* a device thread does not tick any more */
	bool keeper_gone;       /* state at the last check */
	uint64_t limits_passed; /* how often a process exceeded its GPU memory limit */
	gid_t group;            /* its members have the rights of root; (gid_t)-1: no such group */
};

/* control.c: start, main loop and end of the daemon. */

int gp_control_begin(struct gp_control *c, const struct gp_options *options, struct gp_error *err);
int gp_control_run(struct gp_control *c, struct gp_error *err);
/* 0, or -errno if a task could not be put back: it has an undo record, for the keeper. */
int gp_control_end(struct gp_control *c, struct gp_error *err);

/* configure.c: the configuration. */

/* One reading of the configuration. It may block and touches no state of the daemon. */
struct gp_reading {
	const char *option; /* path given on the command line, or NULL */
	bool had_file;      /* the daemon was started with a file */
	unsigned nusers;    /* users whose limits are needed, with those of their groups */
	uid_t *user;
	struct gp_limit *limit;

	int code;
	struct gp_error err;
	char path[256]; /* "": no file, the defaults apply */
	struct gp_config *config;
	gid_t group; /* its members have the rights of root; (gid_t)-1: no such group */
};
void gp_configuration_read(struct gp_reading *r);
void gp_configuration_use(struct gp_control *c, const struct gp_reading *r);
/* Reads the configuration at start. */
int gp_control_configure(struct gp_control *c, struct gp_error *err);

/* policy_source.c: which policy a device has, and where it comes from. */

/* The policy of the command line, else that of the configuration. */
int gp_policy_configured(const struct gp_control *c, const char *device,
			 struct gp_policy_choice *choice, struct gp_policy_origin *origin,
			 struct gp_error *err);
/* The policy chosen at run time for all devices, else the configured policy. */
int gp_control_policy(const struct gp_control *c, const char *device,
		      struct gp_policy_choice *choice, struct gp_policy_origin *origin,
		      struct gp_error *err);
/*
 * At start: drops a policy that was chosen earlier, if the command line has one or if the
 * configured policy has been changed since. Logs what happens to it.
 */
void gp_policy_review(struct gp_control *c);
/*
 * After a reload: if the configured policy was changed, it replaces the policies of all devices,
 * also those that users chose.
 */
void gp_policy_reload(struct gp_control *c);

/* reload.c: reading the configuration again. */

/*
 * Starts a reload. If the new configuration is wrong, the old one stays. `call`, if not NULL, is
 * answered at the end. 0, or -errno: `call` is not answered.
 */
int gp_control_reload(struct gp_control *c, struct gp_rpc_call *call);
void gp_reload_end(struct gp_control *c);

/* heartbeat.c: periodic work. */

int gp_heartbeat_begin(struct gp_control *c);
/* Gives the event source a higher priority than clients. The loop owns it from then on. */
int gp_run_before_clients(sd_event_source *source);

/* restart_keys.c: logs which changed keys apply only after a restart. */
void gp_warn_restart_needed(const struct gp_config *old, const struct gp_config *new);

/* sweeper.c: drops undo records of processes that have ended. */

int gp_sweeper_begin(struct gp_control *c, struct gp_error *err);
void gp_sweeper_end(struct gp_control *c);

/* apply_rules.c: attributes and memory limits that rules give to processes. */

int gp_rules_begin(struct gp_control *c, struct gp_error *err);
/*
 * The process has its first task. Rules set its memory limit and, unless a user set them, its
 * attributes.
 */
void gp_process_arrived(struct gp_control *c, struct gp_proc *proc);
/* To be called periodically: asks again for process info that could not be read in time. */
void gp_rules_retry(struct gp_control *c, uint64_t now_ns);
/* Applies changed rules to all processes. */
void gp_rules_reapply(struct gp_control *c);

/* user_bounds.c: limits on attributes that users set. */

/* The attributes were set by a user who is not an administrator. */
bool gp_set_by_ordinary_user(const struct gp_proc *proc);
/* Applies a new configuration. Looks up the groups of users, so it may block. */
void gp_bounds_renew(struct gp_control *c);
/*
 * gp_bounds_renew in three steps: gp_bounds_users collects the users, gp_bounds_of looks up the
 * limit of one of them (may block), gp_bounds_set applies the limits. It returns false if a user
 * was added meanwhile and has no limit yet; the caller starts again.
 */
int gp_bounds_users(const struct gp_control *c, struct gp_reading *r);
struct gp_limit gp_bounds_of(const struct gp_config *config, uid_t uid);
bool gp_bounds_set(struct gp_control *c, const uid_t *user, const struct gp_limit *limit,
		   unsigned n);
/*
 * Reduces attributes that a user set to what a rule gives the process or the user's limit allows.
 */
void gp_bounds_apply(struct gp_control *c, struct gp_proc *proc, const struct gp_procinfo *info);

/*
 * method_set.c: sends proc->attr to all tasks of the process and publishes an event. `g` may be
 * NULL.
 */
void gp_apply_attr(struct gp_control *c, struct gp_gather *g, const struct gp_proc *proc);
/* Logs that the class of a server that works for many programs applies to all of them. */
void gp_log_shared(const struct gp_proc *proc);

/* leases.c: why users' holds last. */

/* Adds a lease and returns its number. The process has fewer than GP_LEASES_MAX. */
uint64_t gp_lease_add(struct gp_control *c, struct gp_proc *proc, uint64_t for_ns);
/* False: there is no such lease (any more). */
bool gp_lease_renew(struct gp_proc *proc, uint64_t lease, uint64_t for_ns);
struct gp_lease *gp_lease_find(struct gp_proc *proc, uint64_t number);
bool gp_lease_drop(struct gp_proc *proc, uint64_t lease);
bool gp_hold_has_reason(const struct gp_proc *proc);
/* Forgets the hold, with all reasons. The caller releases the tasks. */
void gp_hold_forget(struct gp_proc *proc);
/* Called periodically: ends holds whose last lease has expired. */
void gp_leases_expire(struct gp_control *c, uint64_t now_ns);

/* gather.c: device commands for one call, and one answer when all are done. */

struct gp_gather {
	struct gp_control *control;
	struct gp_rpc_call *call; /* NULL: no client waits */
	unsigned left;            /* outstanding answers */
	unsigned done;            /* successful answers */
	int status;               /* of the first failure */
	char text[256];
	uint64_t done_on; /* devices that succeeded, a bit for each */
	/* Why new attributes are not in force, by the number of the device; NULL: they are. */
	struct json_object *not_in_force;
	pid_t pid; /* the process concerned; 0 = none */
	uint64_t start_time;
	bool first;                     /* of a hold: it added a reason to hold the process */
	uint64_t lease;                 /* of a hold; 0 = none */
	struct gp_lease ends;           /* of a release: the lease that it ends; number 0 = none */
	struct gp_policy_choice policy; /* the requested policy */
	char policy_text[256];          /* its text; "" with policy_default */
	bool policy_default;            /* the configured policy of each device, instead */
	bool policy_everywhere;         /* on all devices */
	unsigned policy_device;         /* that the answer describes */
	/* Called when all answers have come. Answers the call; the gather is freed afterwards. */
	void (*finish)(struct gp_gather *g);
	struct gp_gather *next, *prev;
};

/* NULL: no memory; the call was answered with an error. */
struct gp_gather *gp_gather_new(struct gp_control *c, struct gp_rpc_call *call,
				void (*finish)(struct gp_gather *g));
/* Sends a device command; one that cannot be sent counts as failed. */
void gp_gather_command(struct gp_gather *g, struct gp_device_thread *thread,
		       struct gp_command *command);
/* Sends a command without an answer for each task of the process. False: a device thread has too
 * many commands waiting. */
bool gp_command_tasks(struct gp_control *c, const struct gp_proc *proc, enum gp_command_kind kind);
/* All device commands were sent. Finishes at once if no answer is outstanding. */
void gp_gather_go(struct gp_gather *g);
void gp_gather_answer(unsigned device, const struct gp_answer *answer);
/* Answers all open calls with an error, at the end of the daemon. */
void gp_gathers_end(struct gp_control *c);

/* events.c: events of the devices, and events for clients. */

int gp_events_begin(struct gp_control *c);
/* Handles the events and answers that the device threads have put into their rings. */
void gp_events_take(struct gp_control *c);
/*
 * Creates an event; NULL: no client subscribes to it. The caller adds members and passes it to
 * gp_events_publish.
 */
struct json_object *gp_event_new(struct gp_control *c, enum gp_topic topic);
void gp_event_add_proc(struct json_object *event, const struct gp_proc *proc);
void gp_events_publish(struct gp_control *c, enum gp_topic topic, struct json_object *event);
/* Tells the device threads which events clients subscribe to. */
void gp_events_want(struct gp_control *c);
/* Reads lost TASK_IN and TASK_OUT events from snapshots that are new enough. */
void gp_events_catch_up(struct gp_control *c);
/* Compares the GPU memory of processes with their limits. */
void gp_events_check_limits(struct gp_control *c);

/* to_json.c: snapshots as JSON. */

struct json_object *gp_render_device(struct gp_control *c, unsigned device);
struct json_object *gp_render_task(struct gp_control *c, unsigned device,
				   const struct gp_snapshot *snapshot, unsigned index);

/* Methods of the protocol, each in method_NAME.c. */

typedef int gp_method_fn(void *arg, struct gp_rpc_call *call, struct json_object *params);

/* method_query.c: memory and CPU time of the daemon. */
uint64_t gp_resident_bytes(void);
uint64_t gp_cpu_ns(void);

gp_method_fn gp_method_devices, gp_method_tasks, gp_method_stats;      /* method_query.c */
gp_method_fn gp_method_set;                                            /* method_set.c */
gp_method_fn gp_method_hold, gp_method_release, gp_method_release_all; /* method_hold.c */
gp_method_fn gp_method_policy, gp_method_reload;                       /* method_policy.c */
gp_method_fn gp_method_subscribe;                                      /* method_subscribe.c */
gp_method_fn gp_method_hint, gp_method_mark;                           /* method_hint.c */

/* methods.c: the tables of methods. */
extern const struct gp_rpc_method gp_control_methods[], gp_hint_methods[];
extern const unsigned gp_control_nmethods, gp_hint_nmethods;

/* access.c: access rights. True if the client is an administrator, and not root of a container. */
bool gp_administers(const struct gp_control *c, const struct gp_rpc_peer *peer);

/* The configured limit up to which this client may raise processes. */
struct gp_limit gp_configured_limit(const struct gp_control *c, const struct gp_rpc_peer *peer);

/* Each returns 0, or -EPERM with a message. `proc` NULL: all processes. `err` may be NULL. */
int gp_may_read(struct gp_control *c, const struct gp_rpc_call *call, const struct gp_proc *proc,
		struct gp_error *err);
int gp_may_set(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
	       const struct gp_task_attr *to, struct gp_error *err);
int gp_may_hold(struct gp_control *c, struct gp_rpc_call *call, const struct gp_proc *proc,
		bool release, struct gp_error *err);
int gp_may_administer(struct gp_control *c, struct gp_rpc_call *call, struct gp_error *err);

/*
 * The target process of a call, which is known from now on; NULL: the call was answered with an
 * error.
 */
struct gp_proc *gp_method_target(struct gp_control *c, struct gp_rpc_call *call,
				 struct json_object *params);
/* Whether the call may be logged: the lines of each user are limited. */
bool gp_method_may_log(struct gp_control *c, const struct gp_rpc_call *call);

#endif
