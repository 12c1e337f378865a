/* SPDX-License-Identifier: Apache-2.0 */
/* The file `control`: what goes wrong on purpose, how long things take, which driver this is. */
#include "sim/model/sim_gpu.h"
#include "rm.h"

#define MAX_RULES    64u
#define MAX_COMMANDS 64u

enum rule_kind {
	RULE_NONE,
	RULE_STATUS,
	RULE_ERRNO,
	RULE_IGNORE,
	RULE_KILL,
	RULE_UNSUPPORTED,
	RULE_SKIP,
	RULE_INVERT
};

struct rule {
	enum rule_kind kind;
	uint32_t cmd;
	uint32_t value; /* status, errno, pid, entries */
	uint64_t count; /* calls it still applies to */
	uint64_t after; /* calls that are spared before */
};

static struct rule rules[MAX_RULES];
static uint64_t latency_ns[MAX_COMMANDS]; /* by the command's place in the table */
static uint64_t enable_ns;

static bool is_pseudo(uint32_t cmd)
{
	return cmd == CMD_ALLOC || cmd == CMD_FREE;
}

/* Whether the rule says something about this call; if so it is counted. */
static bool applies(struct rule *rule, enum rule_kind kind, uint32_t cmd)
{
	if (rule->kind != kind || !rule->count)
		return false;
	if (rule->cmd != cmd && (rule->cmd != CMD_ANY || is_pseudo(cmd)))
		return false;
	if (rule->after) {
		rule->after--;
		return false;
	}
	if (!--rule->count)
		rule->kind = RULE_NONE;
	return true;
}

static struct rule *rule_take(enum rule_kind kind, uint32_t cmd)
{
	for (size_t i = 0; i < MAX_RULES; i++)
		if (applies(&rules[i], kind, cmd))
			return &rules[i];
	return NULL;
}

struct fault fault_take(uint32_t cmd, pid_t caller)
{
	const struct rule *error = rule_take(RULE_ERRNO, cmd);
	const struct rule *status = rule_take(RULE_STATUS, cmd);
	const struct rule *ignore = rule_take(RULE_IGNORE, cmd);
	const struct rule *death = rule_take(RULE_KILL, cmd);
	struct fault fault = {
		.error = error ? (int)error->value : 0,
		.status = status ? status->value : NV_OK,
		.ignore = ignore != NULL,
	};

	if (death)
		fault.kill = death->value ? (pid_t)death->value : caller;
	return fault;
}

uint32_t fault_skipped(uint32_t cmd)
{
	const struct rule *skip = rule_take(RULE_SKIP, cmd);

	return skip ? skip->value : 0;
}

bool fault_inverts(uint32_t cmd)
{
	return rule_take(RULE_INVERT, cmd);
}

bool fault_is_unsupported(uint32_t cmd)
{
	for (size_t i = 0; i < MAX_RULES; i++)
		if (rules[i].kind == RULE_UNSUPPORTED && rules[i].cmd == cmd)
			return true;
	return false;
}

uint64_t fault_latency_ns(uint32_t cmd, bool enable)
{
	if (enable)
		return enable_ns;
	for (size_t i = 0; command_at(i); i++)
		if (command_at(i)->cmd == cmd)
			return latency_ns[i];
	return 0;
}

static bool parse_u32(const char *text, uint32_t *value)
{
	uint64_t number;

	if (!control_number(text, &number) || number > UINT32_MAX)
		return false;
	*value = (uint32_t)number;
	return true;
}

/* A name of the table, `alloc`, `free`, `any`, or a number. */
static bool parse_cmd(const char *text, uint32_t *cmd)
{
	if (!text)
		return false;
	if (!strcmp(text, "any"))
		*cmd = CMD_ANY;
	else if (!strcmp(text, "alloc"))
		*cmd = CMD_ALLOC;
	else if (!strcmp(text, "free"))
		*cmd = CMD_FREE;
	else if (parse_u32(text, cmd))
		return true;
	else {
		for (size_t i = 0; command_at(i); i++)
			if (!strcmp(text, command_at(i)->name)) {
				*cmd = command_at(i)->cmd;
				return true;
			}
		return false;
	}
	return true;
}

static int rule_add(struct rule rule)
{
	for (size_t i = 0; i < MAX_RULES; i++)
		if (rules[i].kind == RULE_NONE) {
			rules[i] = rule;
			return 0;
		}
	return -EINVAL;
}

/* fault CMD STATUS COUNT [after N]   and errno CMD ERRNO COUNT [after N] */
static int set_fault(char **word)
{
	struct rule rule = {.kind = word[0][0] == 'f' ? RULE_STATUS : RULE_ERRNO};

	if (!parse_cmd(word[1], &rule.cmd) || !parse_u32(word[2], &rule.value) ||
	    !control_number(word[3], &rule.count))
		return -EINVAL;
	if (word[4] && (strcmp(word[4], "after") != 0 || !control_number(word[5], &rule.after)))
		return -EINVAL;
	return rule_add(rule);
}

/* ignore CMD COUNT */
static int set_ignore(char **word)
{
	struct rule rule = {.kind = RULE_IGNORE};

	if (!parse_cmd(word[1], &rule.cmd) || !control_number(word[2], &rule.count))
		return -EINVAL;
	return rule_add(rule);
}

/* skip MASK COUNT */
static int set_skip(char **word)
{
	struct rule rule = {.kind = RULE_SKIP, .cmd = NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS};

	if (!parse_u32(word[1], &rule.value) || !control_number(word[2], &rule.count))
		return -EINVAL;
	return rule_add(rule);
}

/* invert COUNT: the calls that disable channels enable them, and the other way round */
static int set_invert(char **word)
{
	struct rule rule = {.kind = RULE_INVERT, .cmd = NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS};

	if (!control_number(word[1], &rule.count))
		return -EINVAL;
	if (word[2] && (strcmp(word[2], "after") != 0 || !control_number(word[3], &rule.after)))
		return -EINVAL;
	return rule_add(rule);
}

/* kill_on CMD PID; 0: the caller */
static int set_kill(char **word)
{
	struct rule rule = {.kind = RULE_KILL, .count = 1};

	if (!parse_cmd(word[1], &rule.cmd) || !parse_u32(word[2], &rule.value))
		return -EINVAL;
	return rule_add(rule);
}

static int set_unsupported(char **word)
{
	struct rule rule = {.kind = RULE_UNSUPPORTED};

	if (!parse_cmd(word[1], &rule.cmd) || word[2])
		return -EINVAL;
	return rule_add(rule);
}

/* latency NAME|CMD|all|enable TIME */
static int set_latency(char **word)
{
	bool all = word[1] && !strcmp(word[1], "all");
	uint64_t ns;
	uint32_t cmd = 0;

	if (!word[1] || !control_time(word[2], 0, &ns) || word[3])
		return -EINVAL;
	if (all || !strcmp(word[1], "enable"))
		enable_ns = ns;
	else if (!parse_cmd(word[1], &cmd) || !command_find(cmd))
		return -EINVAL;
	for (size_t i = 0; command_at(i); i++)
		if (command_at(i)->cmd == cmd || (all && command_at(i)->flags & COMMAND_FIRMWARE))
			latency_ns[i] = ns;
	return 0;
}

static int set_version(char **word)
{
	for (const struct driver *d = rm_drivers; d->name; d++)
		if (word[1] && !strcmp(word[1], d->name)) {
			rm.driver = d;
			return 0;
		}
	return -EINVAL;
}

static int set_client_index(char **word)
{
	uint32_t index;

	if (!parse_u32(word[1], &index) || index >= NV_CLIENT_COUNT)
		return -EINVAL;
	rm.next_index = index;
	return 0;
}

static int set_lost(char **word)
{
	uint32_t gpu;

	if (!parse_u32(word[1], &gpu) || gpu >= rm.engine.ngpus)
		return -EINVAL;
	rm.lost[gpu] = true;
	return 0;
}

static int set_gsp(char **word)
{
	return control_choice(word[1], "off", "on", &rm.gsp) ? 0 : -EINVAL;
}

static int set_clock_back(char **word)
{
	uint64_t ns;

	if (!control_time(word[1], 0, &ns))
		return -EINVAL;
	rm.clock_back_us = ns / GP_NS_PER_US;
	return 0;
}

static int set_api_lock(char **word)
{
	return control_choice(word[1], "off", "on", &rm.api_lock) ? 0 : -EINVAL;
}

/* undo PID: the process sets its slices again, as CUDA does after it made a group */
static int undo(char **word)
{
	uint32_t pid;

	if (!parse_u32(word[1], &pid))
		return -EINVAL;
	for (struct client *c = rm.clients; c; c = c->next)
		for (struct object *o = c->objects; o && c->pid == (pid_t)pid; o = o->next)
			if (o->kind == KIND_GROUP)
				group_set_slice(o->group,
						o->group->engine_type == NV2080_ENGINE_TYPE_GR0
							? gp_sim_h200.slice_us
							: gp_sim_h200.slice_us / 2);
	pthread_cond_broadcast(&rm.engine.changed);
	return 0;
}

void control_h200(void)
{
	char *lines[][3] = {{"", "set_timeslice", "273us"}, {"", "disable", "696us"},
			    {"", "enable", "423us"},        {"", "schedule", "212us"},
			    {"", "preempt", "440us"},       {"", "set_interleave", "273us"}};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *word[4] = {lines[i][0], lines[i][1], lines[i][2], NULL};

		set_latency(word);
	}
}

/* read_slice US: what GET_TIMESLICE answers for every group */
static int set_slice_read(char **word)
{
	return control_number(word[1], &rm.slice_read_us) ? 0 : -EINVAL;
}

/* read_channels enabled|disabled [COUNT]: what GET_CHANNEL_STATE answers for every channel */
static int set_channels_read(char **word)
{
	if (!word[1] || (strcmp(word[1], "enabled") != 0 && strcmp(word[1], "disabled") != 0))
		return -EINVAL;
	rm.channels_read_left = 0;
	if (word[2] && !control_number(word[2], &rm.channels_read_left))
		return -EINVAL;
	rm.channels_read = strcmp(word[1], "enabled") ? 1 : 2;
	return 0;
}

static int clear_faults(char **word)
{
	(void)word;
	rm.slice_read_us = 0;
	rm.channels_read = 0;
	memset(rules, 0, sizeof(rules));
	return 0;
}

static int reset_counts(char **word)
{
	(void)word;
	count_reset();
	return 0;
}

int control_line(char *line)
{
	static const struct control_command commands[] = {
		{"fault", set_fault},
		{"errno", set_fault},
		{"ignore", set_ignore},
		{"skip", set_skip},
		{"invert", set_invert},
		{"kill_on", set_kill},
		{"read_slice", set_slice_read},
		{"read_channels", set_channels_read},
		{"unsupported", set_unsupported},
		{"latency", set_latency},
		{"version", set_version},
		{"client_index", set_client_index},
		{"lost", set_lost},
		{"gsp", set_gsp},
		{"clock_back", set_clock_back},
		{"api_lock", set_api_lock},
		{"undo", undo},
		{"reset_counts", reset_counts},
		{"clear_faults", clear_faults},
		{0},
	};

	return control_run(line, commands, rm_lock, rm_unlock);
}
