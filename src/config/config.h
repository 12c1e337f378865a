/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of gpreemptd (man gpreempt.yaml(5)): its values, and the attributes and limits
 * that follow from them for a process. It is checked completely when it is read and never changes
 * afterwards, so any thread may read it.
 */
#ifndef GP_CONFIG_CONFIG_H
#define GP_CONFIG_CONFIG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "policy/registry.h"
#include "task/task.h"
#include "procinfo/procinfo.h"

#define GP_CONFIG_PATH "/etc/gpreempt/gpreempt.yaml"

enum gp_config_gpu {
	GP_CONFIG_GPU_ALL,
	GP_CONFIG_GPU_NVIDIA,
	GP_CONFIG_GPU_AMD,
	GP_CONFIG_GPU_SIM
};

struct gp_config_policy {
	char text[192]; /* as written, for example "priority:quantum=50" */
	struct gp_policy_choice choice;
};

/* Settings for the devices with a matching name. */
struct gp_config_device {
	char match[64]; /* glob; matches any part of the device's name */
	bool ignore;    /* the daemon does not use this device */
	bool has_policy;
	struct gp_config_policy policy;
};

struct gp_config_scheduler {
	uint32_t realtime; /* SCHED_FIFO priority of the device threads; 0 = none */
	uint32_t core;     /* the device threads are pinned to it; GP_CONFIG_NO_CORE = none */
	/* As in struct gp_engine_config; 0 = the engine's default. */
	uint64_t check_ns, check_lc_ns, check_quiet_ns, scan_every_ns, starve_limit_ns;
};

#define GP_CONFIG_NO_CORE    UINT32_MAX
#define GP_CONFIG_SOCKET_MAX 108 /* bytes with the terminating 0, as in struct sockaddr_un */

struct gp_config_socket {
	char path[GP_CONFIG_SOCKET_MAX]; /* "" = the default name in the run-time folder
					    (gp_run_dir) */
	char mode_text[8];
	mode_t mode;
};

struct gp_config_sockets {
	struct gp_config_socket control, hint;
	char group_name[64];
	bool has_group;
	gid_t group; /* of the socket files; its members have the rights of root (rights.h) */
};

struct gp_config_clients {
	uint32_t max, per_user;
	uint64_t request_size; /* bytes */
	uint32_t rate;         /* requests per second of one client */
	uint64_t idle_ns;
};

struct gp_config_metrics {
	char listen[80]; /* as written; "off" = no metrics */
	bool on, public; /* public: other addresses than loopback are allowed */
	bool tasks;      /* with series for each task */
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
};

/* How far users may raise their own processes. */
struct gp_limit {
	uint8_t class; /* the highest class, in the order be, unmanaged, lc */
	uint8_t priority;
	uint32_t weight;
	uint32_t max_tasks;        /* processes with attributes that the user set */
	uint32_t share_permille;   /* also bounds budget / deadline */
	uint32_t ceiling_permille; /* 1000 = none */
	uint64_t deadline_ns;      /* the shortest deadline; GP_NEVER = no deadline allowed */
	uint64_t memory;           /* bytes; the highest memory limit; UINT64_MAX = no limit */
};

/* The default for all users: class unmanaged, and no value above the default attributes. */
extern const struct gp_limit gp_limit_default;
/* Allows nothing beyond what a rule gives to the process. */
extern const struct gp_limit gp_limit_least;
/* No limit, for root and administrators. */
extern const struct gp_limit gp_limit_none;

struct gp_config_limit {
	uint32_t id; /* uid or gid */
	struct gp_limit limit;
};

enum gp_on_memory_limit { GP_MEMORY_EVENT, GP_MEMORY_HOLD };

enum gp_gang_kind { GP_GANG_NONE, GP_GANG_NAMED, GP_GANG_CGROUP, GP_GANG_PROCESS };

/* The processes that a rule matches. Unused criteria are "". */
struct gp_criteria {
	uint32_t asks; /* which criteria are used: GP_ASKS_* */
	char user_name[64], group_name[64];
	uid_t user;
	gid_t group;
	char cgroup[192], exe[192], comm[64], cmdline[192];
	char env[192];     /* as written: NAME or NAME=glob */
	uint32_t env_name; /* length of NAME */
	bool anyone;
};

enum {
	GP_ASKS_USER = 1u << 0,
	GP_ASKS_GROUP = 1u << 1,
	GP_ASKS_CGROUP = 1u << 2,
	GP_ASKS_EXE = 1u << 3,
	GP_ASKS_COMM = 1u << 4,
	GP_ASKS_CMDLINE = 1u << 5,
	GP_ASKS_ENV = 1u << 6,
	GP_ASKS_ANYONE = 1u << 7,
};

struct gp_rule {
	unsigned line; /* first line in the file */
	struct gp_criteria match;
	struct gp_task_attr attr; /* without the gang, which depends on the process */
	uint8_t gang_kind;        /* enum gp_gang_kind */
	char gang[64];
	uint64_t memory_limit; /* bytes; 0 = none */
	uint8_t on_memory_limit;
};

#define GP_CONFIG_RULES_MAX   512u
#define GP_CONFIG_DEVICES_MAX 64u
#define GP_CONFIG_LIMITS_MAX  1024u

struct gp_config {
	struct gp_config_policy policy;
	uint8_t gpu; /* enum gp_config_gpu */
	uint32_t ndevices;
	struct gp_config_device *device;
	struct gp_config_scheduler scheduler;
	struct gp_config_sockets sockets;
	struct gp_config_clients clients;
	struct gp_config_metrics metrics;
	uint8_t log_level;     /* enum gp_log_level */
	uint64_t memory_limit; /* bytes, for processes without a limit in their rule; 0 = none */
	uint8_t on_memory_limit;
	uint32_t nrules;
	struct gp_rule *rule;
	struct gp_limit limit; /* of all users */
	struct gp_limit
		granted; /* only the values that the file sets; gp_limit_least for the rest */
	uint32_t nusers, ngroups;
	struct gp_config_limit *user, *group;
};

/*
 * The path of the configuration: `option` if not NULL, else $GPREEMPT_CONFIG (ignored under
 * AT_SECURE), else GP_CONFIG_PATH. `chosen`, if not NULL, is true for the first two: then the file
 * must exist.
 */
const char *gp_config_path(const char *option, bool *chosen);

/*
 * Reads and checks a whole file. Each mistake is -EINVAL with one message "FILE:LINE: ...". An
 * unreadable file is -errno; a file that other users could write is -EPERM. Looks up users and
 * groups, so it may block. -ENOTSUP in a build without libyaml. The caller frees the result.
 */
int gp_config_load(const char *path, struct gp_config **config, struct gp_error *err);

/* The configuration of an empty file. 0 or -ENOMEM. */
int gp_config_default(struct gp_config **config);
void gp_config_free(struct gp_config *config);

/* Functions that look up names; 0 or -ENOENT. */
struct gp_config_names {
	int (*user)(const char *name, uid_t *uid);
	int (*group)(const char *name, gid_t *gid);
};
extern const struct gp_config_names gp_config_system_names;

/* The same as gp_config_load, from memory; `path` is used in messages. */
int gp_config_parse(const char *path, const char *text, size_t length,
		    const struct gp_config_names *names, struct gp_config **config,
		    struct gp_error *err);

/* The process info that rules and limits need: GP_PROCINFO_*. */
uint32_t gp_config_wants(const struct gp_config *c);

/* The policy for the device `name`. `ignore`: the daemon does not use the device. */
const struct gp_config_policy *gp_config_device(const struct gp_config *c, const char *name,
						bool *ignore);

/* A number that changes when the policy of any device is changed in the file. Never 0. */
uint64_t gp_config_policies_key(const struct gp_config *c);

struct gp_match {
	int rule;        /* its index; -1: no rule matches, and the other members are defaults */
	bool incomplete; /* an earlier rule might match if more were known */
	bool clamped;    /* the user's limit reduced what the rule gives */
	bool trusted;    /* the match used nothing that users control */
	struct gp_task_attr attr;
	uint64_t memory_limit; /* bytes; 0 = none */
	/*
	 * enum gp_on_memory_limit, regardless of the class, which users may change. An unmanaged
	 * process is never held; the class is checked when the limit is exceeded.
	 */
	uint8_t on_memory_limit;
};

/*
 * Finds the first rule that matches. A rule that needs unknown information does not match. Values
 * that users control (command line, environment, name, own executable or cgroup) never raise a
 * process above its user's limit. The work is bounded for any input. Returns 0, or -ENOENT if no
 * rule matches; `out` is complete either way.
 */
int gp_config_match(const struct gp_config *c, const struct gp_procinfo *info,
		    struct gp_match *out);

/*
 * The limit that the file gives to a user with these groups: the most generous value of each entry
 * that applies. The limit of a request is this plus what the process is given anyway
 * (gp_limit_add_given).
 */
struct gp_limit gp_config_limit(const struct gp_config *c, uid_t uid, const gid_t *gid,
				uint32_t ngids);

/*
 * Widens `limit` by the attributes that a rule gives to the process (GP_TASK_ATTR_DEFAULT without a
 * rule).
 */
void gp_limit_add_given(struct gp_limit *limit, const struct gp_task_attr *given);

/*
 * The limit of a rule that matched values which users control. Root has no limit, but only in the
 * daemon's pid namespace. For a set-uid program the smallest limit of its users applies.
 */
struct gp_limit gp_config_limit_of(const struct gp_config *c, const struct gp_procinfo *info);

/*
 * Gang numbers, never 0, stable over restarts. Numbers of users, administrators, cgroups and
 * processes never collide, nor do those of two users: no user can join a gang of another user by
 * its name.
 */
uint64_t gp_gang_of_user(uid_t uid, const char *name);
uint64_t gp_gang_of_admin(const char *name);
uint64_t gp_gang_of_cgroup(const char *path);
uint64_t gp_gang_of_process(uint64_t start_time, pid_t pid);

#endif
