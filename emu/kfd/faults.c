/* SPDX-License-Identifier: Apache-2.0 */
/* The file `control`: what goes wrong on purpose, how long things take, which driver this is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "kfd.h"

#define MAX_RULES 32u
#define MAX_WORDS 8

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

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	*value = strtoull(text, &end, 0);
	return !*end && !errno;
}

/* 5 or 5us, 5ms, 5s: without a unit it is us. */
static bool parse_time(const char *text, uint64_t *ns)
{
	uint64_t value;
	char *unit;

	if (!text || *text < '0' || *text > '9')
		return false;
	value = strtoull(text, &unit, 10);
	if (!*unit || !strcmp(unit, "us"))
		*ns = value * GP_NS_PER_US;
	else if (!strcmp(unit, "ms"))
		*ns = value * GP_NS_PER_MS;
	else if (!strcmp(unit, "s"))
		*ns = value * GP_NS_PER_S;
	else
		return false;
	return true;
}

static struct device *parse_device(const char *text)
{
	uint64_t index;

	if (!text)
		return &kfd.device[0];
	if (!parse_number(text, &index) || index >= kfd.ndevices)
		return NULL;
	return &kfd.device[index];
}

static struct process *parse_process(const char *text)
{
	uint64_t pid;

	return parse_number(text, &pid) ? process_find((pid_t)pid) : NULL;
}

static int add_rule(char **word, enum rule_kind kind)
{
	struct fault_rule rule = {.kind = kind, .count = 1};
	bool parsed = kind == KIND_DELAY ? parse_time(word[2], &rule.value)
					 : parse_number(word[2], &rule.value);

	if (!word[1] || !parsed || (word[3] && !parse_number(word[3], &rule.count)) ||
	    (word[3] && word[4] && !parse_number(word[4], &rule.after)) || !rule.count)
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

	if (!d || !parse_number(word[1], &count))
		return -EINVAL;
	d->fail_cycles = (uint32_t)count;
	return 0;
}

/* reset GPU begin|end */
static int reset(char **word)
{
	struct device *d = parse_device(word[1]);

	if (!d || !word[2] || (strcmp(word[2], "begin") != 0 && strcmp(word[2], "end") != 0))
		return -EINVAL;
	device_reset(d, word[2][0] == 'b');
	return 0;
}

static int evict(char **word, bool restore)
{
	struct process *p = parse_process(word[1]);

	if (!p)
		return -ESRCH;
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		(restore ? device_restore : device_evict)(&kfd.device[i], p);
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
	if (parse_time(word[2], &ns)) {
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
	if (parse_number(word[2], &state) && state <= KFD_RUNTIME_ERROR)
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
	for (uint32_t i = 0; i < kfd.ndevices && parse_number(word[2], &bytes); i++)
		p->on[i].vram = bytes;
	process_put(p);
	return 0;
}

static int set_rule(const char *text)
{
	if (!text || (strcmp(text, "old") != 0 && strcmp(text, "new") != 0))
		return -EINVAL;
	kfd.rule = *text == 'o' ? RULE_OLD : RULE_NEW;
	return 0;
}

static int set_version(const char *text)
{
	return text && sscanf(text, "%u.%u", &kfd.major, &kfd.minor) == 2 ? 0 : -EINVAL;
}

static int set_policy(const char *text)
{
	uint64_t value;

	if (!parse_number(text, &value) || value > 2)
		return -EINVAL;
	kfd.sched_policy = (uint32_t)value;
	return 0;
}

static int set_time(const char *text, uint64_t *ns)
{
	return parse_time(text, ns) ? 0 : -EINVAL;
}

static int clear_faults(void)
{
	memset(rules, 0, sizeof(rules));
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		kfd.device[i].fail_cycles = 0;
	return 0;
}

static int obey_setting(char **word)
{
	if (!strcmp(word[0], "rule"))
		return set_rule(word[1]);
	if (!strcmp(word[0], "version"))
		return set_version(word[1]);
	if (!strcmp(word[0], "sched_policy"))
		return set_policy(word[1]);
	if (!strcmp(word[0], "suspend_us"))
		return set_time(word[1], &kfd.suspend_ns);
	if (!strcmp(word[0], "resume_us"))
		return set_time(word[1], &kfd.resume_ns);
	if (!strcmp(word[0], "runtime_state"))
		return set_runtime_state(word);
	if (!strcmp(word[0], "gws"))
		return set_gws(word);
	if (!strcmp(word[0], "vram"))
		return set_vram(word);
	return -EINVAL;
}

static int obey(char **word)
{
	static const struct {
		const char *name;
		enum rule_kind kind;
	} kinds[] = {{"errno", KIND_ERRNO},           {"delay", KIND_DELAY},
		     {"kill_on", KIND_KILL},          {"ignore", KIND_IGNORE},
		     {"late_errno", KIND_LATE_ERRNO}, {"result", KIND_RESULT},
		     {"out_count", KIND_OUT_COUNT},   {"out_size", KIND_OUT_SIZE}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(word[0], kinds[i].name))
			return add_rule(word, kinds[i].kind);
	if (!strcmp(word[0], "preempt_timeout"))
		return fail_preemption(word);
	if (!strcmp(word[0], "reset"))
		return reset(word);
	if (!strcmp(word[0], "evict"))
		return evict(word, false);
	if (!strcmp(word[0], "restore"))
		return evict(word, true);
	if (!strcmp(word[0], "hold_mutex"))
		return hold_mutex(word);
	if (!strcmp(word[0], "wake"))
		return kfd.wakes++, 0;
	if (!strcmp(word[0], "clear_faults"))
		return clear_faults();
	if (!strcmp(word[0], "reset_counts"))
		return count_reset(), 0;
	return obey_setting(word);
}

int control_line(char *line)
{
	char *word[MAX_WORDS + 1] = {0}, *rest = NULL;
	int count = 0, result;

	for (char *w = strtok_r(line, " \t\n", &rest); w; w = strtok_r(NULL, " \t\n", &rest)) {
		if (count == MAX_WORDS)
			return -EINVAL;
		word[count++] = w;
	}
	if (!count || word[0][0] == '#')
		return 0;
	kfd_lock();
	result = obey(word);
	kfd_unlock();
	return result;
}
