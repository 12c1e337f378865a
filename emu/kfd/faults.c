/* SPDX-License-Identifier: Apache-2.0 */
/* The file `control`: what goes wrong on purpose, how long things take, which driver this is. */
#include "kfd.h"

#define MAX_RULES 32u

enum rule_kind {
	KIND_NONE,
	KIND_ERRNO,
	KIND_DELAY,
	KIND_KILL,
	KIND_IGNORE,
	KIND_LATE_ERRNO,
	KIND_RESULT,
	KIND_OUT_COUNT,
	KIND_OUT_SIZE,
	KIND_OUT_TYPE,
	KIND_OUT_GPU,
	KIND_PART,
};

static struct fault_rule {
	enum rule_kind kind;
	char name[32];  /* as in `counts`, or `any` */
	uint64_t value; /* errno, ns, pid, result */
	uint64_t count, after;
} rules[MAX_RULES];

static bool applies(struct fault_rule *rule, const char *name)
{
	if (rule->kind == KIND_NONE ||
	    (strcmp(rule->name, name) != 0 && strcmp(rule->name, "any") != 0))
		return false;
	if (rule->after) {
		rule->after--;
		return false;
	}
	return true;
}

static void apply(const struct fault_rule *rule, pid_t caller, struct fault *fault)
{
	switch (rule->kind) {
	case KIND_ERRNO: fault->error = (int)rule->value; break;
	case KIND_DELAY: fault->delay_ns = rule->value; break;
	case KIND_KILL: fault->kill = rule->value ? (pid_t)rule->value : caller; break;
	case KIND_OUT_COUNT:
		fault->out_count = (uint32_t)rule->value;
		fault->sets_count = true;
		break;
	case KIND_OUT_SIZE:
		fault->out_size = (uint32_t)rule->value;
		fault->sets_size = true;
		break;
	case KIND_OUT_TYPE:
		fault->out_type = (uint32_t)rule->value;
		fault->sets_type = true;
		break;
	case KIND_OUT_GPU: fault->out_gpu = (uint32_t)rule->value; break;
	case KIND_PART:
		fault->part = (uint32_t)rule->value;
		fault->is_part = true;
		break;
	default:
		fault->ignored = rule->kind == KIND_IGNORE;
		fault->result =
			rule->kind == KIND_LATE_ERRNO ? -(int)rule->value : (int)rule->value;
		fault->sets_result = true;
	}
}

struct fault fault_take(const char *name, pid_t caller)
{
	struct fault fault = {0};

	for (size_t i = 0; i < MAX_RULES; i++) {
		struct fault_rule *rule = &rules[i];

		if (!applies(rule, name))
			continue;
		apply(rule, caller, &fault);
		if (!--rule->count)
			rule->kind = KIND_NONE;
	}
	return fault;
}

static struct device *parse_device(const char *text)
{
	uint64_t index;

	if (!text)
		return &kfd.device[0];
	if (!control_number(text, &index) || index >= kfd.ndevices)
		return NULL;
	return &kfd.device[index];
}

static struct process *parse_process(const char *text)
{
	uint64_t pid;

	return control_number(text, &pid) ? process_find((pid_t)pid) : NULL;
}

/* The kinds of rules, as commands. */
static const struct {
	const char *name;
	enum rule_kind kind;
} kinds[] = {{"errno", KIND_ERRNO},
	     {"delay", KIND_DELAY},
	     {"kill_on", KIND_KILL},
	     {"ignore", KIND_IGNORE},
	     {"late_errno", KIND_LATE_ERRNO},
	     {"result", KIND_RESULT},
	     {"out_count", KIND_OUT_COUNT},
	     {"out_size", KIND_OUT_SIZE},
	     {"out_type", KIND_OUT_TYPE},
	     {"out_gpu", KIND_OUT_GPU},
	     {"part", KIND_PART}};

static enum rule_kind kind_of(const char *name)
{
	size_t i = 0;

	while (strcmp(kinds[i].name, name) != 0)
		i++;
	return kinds[i].kind;
}

static int add_rule(char **word)
{
	struct fault_rule rule = {.kind = kind_of(word[0]), .count = 1};
	bool parsed = rule.kind == KIND_DELAY ? control_time(word[2], GP_NS_PER_US, &rule.value)
					      : control_number(word[2], &rule.value);

	if (!word[1] || !parsed || (word[3] && !control_number(word[3], &rule.count)) ||
	    (word[3] && word[4] && !control_number(word[4], &rule.after)) || !rule.count)
		return -EINVAL;
	snprintf(rule.name, sizeof(rule.name), "%s", word[1]);
	for (size_t i = 0; i < MAX_RULES; i++)
		if (rules[i].kind == KIND_NONE) {
			rules[i] = rule;
			return 0;
		}
	return -EINVAL;
}

static int fail_preemption(char **word)
{
	struct device *d = parse_device(word[2]);
	uint64_t count;

	if (!d || !control_number(word[1], &count))
		return -EINVAL;
	d->fail_cycles = (uint32_t)count;
	return 0;
}

/* reset GPU begin|end */
static int reset(char **word)
{
	struct device *d = parse_device(word[1]);
	bool begin;

	if (!d || !control_choice(word[2], "end", "begin", &begin))
		return -EINVAL;
	device_reset(d, begin);
	return 0;
}

/* evict PID, restore PID, and put_off PID: the driver tries to restore it, and cannot yet */
static int evict(char **word)
{
	struct process *p = parse_process(word[1]);

	if (!p)
		return -ESRCH;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		if (word[0][0] == 'e')
			device_evict(&kfd.device[i], p, KFD_SMI_TRIGGER_TTM);
		else if (word[0][0] == 'r')
			device_restore(&kfd.device[i], p);
		else
			smi_restored(&kfd.device[i], p->pid, 'R');
	process_put(p);
	return 0;
}

/* hold_mutex PID TIME: callers that need the process's lock wait for TIME */
static int hold_mutex(char **word)
{
	struct process *p = parse_process(word[1]);
	uint64_t ns;

	if (!p)
		return -ESRCH;
	if (control_time(word[2], GP_NS_PER_US, &ns)) {
		p->held_until_ns = kfd_now_ns() + ns;
		process_put(p);
		return 0;
	}
	process_put(p);
	return -EINVAL;
}

static int set_runtime_state(char **word)
{
	struct process *p = parse_process(word[1]);
	uint64_t state;

	if (!p)
		return -ESRCH;
	if (control_number(word[2], &state) && state <= KFD_RUNTIME_ERROR)
		p->runtime.runtime_state = (uint32_t)state;
	process_put(p);
	return 0;
}

/* gws PID on|off: it has what cooperative launches need, on every device */
static int set_gws(char **word)
{
	struct process *p = parse_process(word[1]);

	if (!p)
		return -ESRCH;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		p->on[i].has_gws = word[2] && !strcmp(word[2], "on");
	process_put(p);
	return 0;
}

/* vram PID BYTES */
static int set_vram(char **word)
{
	struct process *p = parse_process(word[1]);
	uint64_t bytes;

	if (!p)
		return -ESRCH;
	for (uint32_t i = 0; i < kfd.ndevices && control_number(word[2], &bytes); i++)
		p->on[i].vram = bytes;
	process_put(p);
	return 0;
}

static int set_rule(char **word)
{
	bool old;

	if (!control_choice(word[1], "new", "old", &old))
		return -EINVAL;
	kfd.rule = old ? RULE_OLD : RULE_NEW;
	return 0;
}

static int set_version(char **word)
{
	return word[1] && sscanf(word[1], "%u.%u", &kfd.major, &kfd.minor) == 2 ? 0 : -EINVAL;
}

static int set_policy(char **word)
{
	uint64_t value;

	if (!control_number(word[1], &value) || value > 2)
		return -EINVAL;
	kfd.sched_policy = (uint32_t)value;
	return 0;
}

static int set_suspend_time(char **word)
{
	return control_time(word[1], GP_NS_PER_US, &kfd.suspend_ns) ? 0 : -EINVAL;
}

static int set_resume_time(char **word)
{
	return control_time(word[1], GP_NS_PER_US, &kfd.resume_ns) ? 0 : -EINVAL;
}

static int wake(char **word)
{
	(void)word;
	kfd.wakes++;
	return 0;
}

static int clear_faults(char **word)
{
	(void)word;
	memset(rules, 0, sizeof(rules));
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		kfd.device[i].fail_cycles = 0;
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
		{"errno", add_rule},
		{"delay", add_rule},
		{"kill_on", add_rule},
		{"ignore", add_rule},
		{"late_errno", add_rule},
		{"result", add_rule},
		{"out_count", add_rule},
		{"out_type", add_rule},
		{"out_gpu", add_rule},
		{"part", add_rule},
		{"out_size", add_rule},
		{"preempt_timeout", fail_preemption},
		{"reset", reset},
		{"evict", evict},
		{"restore", evict},
		{"put_off", evict},
		{"hold_mutex", hold_mutex},
		{"wake", wake},
		{"clear_faults", clear_faults},
		{"reset_counts", reset_counts},
		{"rule", set_rule},
		{"version", set_version},
		{"sched_policy", set_policy},
		{"suspend_us", set_suspend_time},
		{"resume_us", set_resume_time},
		{"runtime_state", set_runtime_state},
		{"gws", set_gws},
		{"vram", set_vram},
		{0},
	};

	return control_run(line, commands, kfd_lock, kfd_unlock);
}
