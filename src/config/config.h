/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of gpreemptd (man gpreempt.yaml(5)): what it says, and what follows from it for
 * a process. It is checked completely when it is read and not changed afterwards, so that any
 * thread may look at it.
 */
#ifndef GP_CONFIG_CONFIG_H
#define GP_CONFIG_CONFIG_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/log.h"
#include "engine/engine.h"
#include "procinfo/procinfo.h"

#define GP_CONFIG_PATH "/etc/gpreempt/gpreempt.yaml"

enum gp_config_gpu {
	GP_CONFIG_GPU_ALL,
	GP_CONFIG_GPU_NVIDIA,
	GP_CONFIG_GPU_AMD,
	GP_CONFIG_GPU_SIM
};

struct gp_config_policy {
	char text[192]; /* as written: "priority:quantum=50" */
	struct gp_policy_choice choice;
};

/* What is said about some devices. */
struct gp_config_device {
	char match[64]; /* glob; stands anywhere in the device's name */
	bool ignore;    /* leave it alone altogether */
	bool has_policy;
	struct gp_config_policy policy;
};

struct gp_config_scheduler {
	uint32_t realtime; /* SCHED_FIFO priority of the device threads; 0 = none */
	uint32_t core;     /* to which they are pinned; GP_CONFIG_NO_CORE = none */
	/* As in struct gp_engine_config; 0 = the engine's own default. */
	uint64_t check_ns, check_lc_ns, check_quiet_ns, scan_every_ns, starve_limit_ns;
};

#define GP_CONFIG_NO_CORE    UINT32_MAX
#define GP_CONFIG_SOCKET_MAX 108 /* bytes with the 0, as struct sockaddr_un has it */

struct gp_config_socket {
	char path[GP_CONFIG_SOCKET_MAX]; /* "" = in the run-time folder (gp_run_dir) */
	char mode_text[8];
	mode_t mode;
};

struct gp_config_sockets {
	struct gp_config_socket control, hint;
	char group_name[64];
	bool has_group;
	gid_t group; /* of the socket files; its members may do what root may (rights.h) */
};

struct gp_config_clients {
	uint32_t max, per_user;
	uint64_t request_size; /* bytes */
	uint32_t rate;         /* requests a second, each */
	uint64_t idle_ns;
};

struct gp_config_metrics {
	char listen[80]; /* as written; "off" */
	bool on, public; /* public: on other addresses than loopback, too */
	bool tasks;      /* series for each task, too */
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
};

/* How high users may raise their own processes. The least is: not at all. */
struct gp_limit {
	uint8_t class; /* the highest, in the order be, unmanaged, lc */
	uint8_t priority;
	uint32_t weight;
	uint32_t share_permille;   /* also of what deadline and budget amount to */
	uint32_t ceiling_permille; /* 1000 = none */
	uint64_t deadline_ns;      /* the shortest; GP_NEVER = none at all */
	uint64_t memory;           /* bytes; the highest memory limit; UINT64_MAX = none */
	uint32_t max_tasks;        /* that a user may have described by himself */
};

/* For all users: unmanaged is the highest, and nothing above what everybody has. */
extern const struct gp_limit gp_limit_default;
/* Nothing that a process has not been given. */
extern const struct gp_limit gp_limit_least;
/* For root and administrators. */
extern const struct gp_limit gp_limit_none;

struct gp_config_limit {
	uint32_t id; /* uid or gid */
	struct gp_limit limit;
};

enum gp_on_memory_limit { GP_MEMORY_EVENT, GP_MEMORY_HOLD };

enum gp_gang_kind { GP_GANG_NONE, GP_GANG_NAMED, GP_GANG_CGROUP, GP_GANG_PROCESS };

/* Which processes. What is not asked for is "". */
struct gp_criteria {
	uint32_t asks; /* GP_ASKS_* */
	char user_name[64], group_name[64];
	uid_t user;
	gid_t group;
	char cgroup[192], exe[192], comm[64], cmdline[192];
	char env[192];     /* NAME or NAME=glob, as written */
	uint32_t env_name; /* how long NAME is */
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
	unsigned line; /* on which it begins */
	struct gp_criteria match;
	struct gp_task_attr attr; /* without the gang */
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
	uint64_t memory_limit; /* bytes, of processes for which no rule says another; 0 = none */
	uint8_t on_memory_limit;
	uint32_t nrules;
	struct gp_rule *rule;
	struct gp_limit limit;   /* of everybody */
	struct gp_limit granted; /* the same, as far as it is written; of the rest the least */
	uint32_t nusers, ngroups;
	struct gp_config_limit *user, *group;
};

/* ---- reading ------------------------------------------------------------------------- */

/*
 * Where it is: `option` if that is not NULL, else $GPREEMPT_CONFIG (not under AT_SECURE), else
 * GP_CONFIG_PATH. `chosen`, if not NULL, says whether somebody asked for this one: then it must be
 * there.
 */
const char *gp_config_path(const char *option, bool *chosen);

/*
 * Reads and checks all of a file. Every mistake is one sentence, "FILE:LINE: ...", and -EINVAL; a
 * file that cannot be read -errno; one that others could have written -EPERM. Asks the system for
 * users and groups, so it may block. -ENOTSUP in a build without libyaml. The caller frees it.
 */
int gp_config_load(const char *path, struct gp_config **config, struct gp_error *err);

/* As if the file were empty. 0 or -ENOMEM. */
int gp_config_default(struct gp_config **config);
void gp_config_free(struct gp_config *config);

/* Who is asked for names; 0 or -ENOENT. */
struct gp_config_names {
	int (*user)(const char *name, uid_t *uid);
	int (*group)(const char *name, gid_t *gid);
};
extern const struct gp_config_names gp_config_system_names;

/* The same as gp_config_load from memory; `path` stands in the sentences. */
int gp_config_parse(const char *path, const char *text, size_t length,
                    const struct gp_config_names *names, struct gp_config **config,
                    struct gp_error *err);

/* ---- what follows from it: nothing here allocates, blocks or fails ------------------- */

/* Which facts the rules and limits need. */
uint32_t gp_config_wants(const struct gp_config *c);

/* The policy of a device of that name; `ignore`: it is left alone. */
const struct gp_config_policy *gp_config_device(const struct gp_config *c, const char *name,
                                                bool *ignore);

struct gp_match {
	int rule;        /* its place in the list; -1: none fits, the rest are defaults */
	bool incomplete; /* a rule before that might fit, if more were known */
	bool clamped;    /* the user's limit took something from what the rule gives */
	bool trusted;    /* nothing that users control took part */
	struct gp_task_attr attr;
	uint64_t memory_limit; /* bytes; 0 = none */
	/* enum gp_on_memory_limit, whatever the class: people may give it another. An unmanaged
	 * process is not held; who would hold it looks at what it is then. */
	uint8_t on_memory_limit;
};

/*
 * The first rule that fits. A rule that needs what is not known does not fit. What users control
 * (command line, environment, name, and a program or cgroup of their own) raises nobody above the
 * limit of that user. The work is bounded whatever a process calls itself. Returns 0, or -ENOENT
 * when no rule fits; `out` is complete either way.
 */
int gp_config_match(const struct gp_config *c, const struct gp_procinfo *info,
                    struct gp_match *out);

/*
 * What is written for a user with these groups: of what applies the most generous in each respect.
 * It is the limit of what that user asks for, once what the process is given anyway is added.
 */
struct gp_limit gp_config_limit(const struct gp_config *c, uid_t uid, const gid_t *gid,
                                uint32_t ngids);

/* ... by the rule that fits it; where none does, it is GP_TASK_ATTR_DEFAULT. */
void gp_limit_add_given(struct gp_limit *limit, const struct gp_task_attr *given);

/* The limit of what users' own words make a rule give to a process: root's is none only in our own
 * pid namespace, and of a set-uid program's users the least applies. */
struct gp_limit gp_config_limit_of(const struct gp_config *c, const struct gp_procinfo *info);

/* ---- gangs --------------------------------------------------------------------------- */

/*
 * Stable numbers, over restarts too, never 0. Those of users, administrators, cgroups and processes
 * are kept apart, and those of two users: nobody gets into a gang of somebody else by a name.
 */
uint64_t gp_gang_of_user(uid_t uid, const char *name);
uint64_t gp_gang_of_admin(const char *name);
uint64_t gp_gang_of_cgroup(const char *path);
uint64_t gp_gang_of_process(uint64_t start_time, pid_t pid);

#endif
