/* SPDX-License-Identifier: Apache-2.0 */
/* The key `device` of a scenario. */
#include "config.h"

#if GP_HAVE_YAML
#include "scenario/parse.h"

static const char *const model_words[] = {[GP_SIM_RUNLIST] = "runlist", NULL};

static const char *const activity_words[] = {
	[GP_ACTIVITY_NONE] = "none",
	[GP_ACTIVITY_SAMPLED] = "sampled",
	[GP_ACTIVITY_EXACT] = "exact",
	[GP_ACTIVITY_EVENTS] = "events",
	NULL,
};

/* clang-format off */
#define IN(member) AT(struct gp_sim_device, member)
static const struct gp_yaml_key device_keys[] = {
	{"model",           WORD(model_words), IN(model)},
	{"switch",          DURATION(0, 10 * GP_NS_PER_S), IN(switch_ns)},
	{"switch_idle",     DURATION(0, 10 * GP_NS_PER_S), IN(switch_idle_ns)},
	{"refill",          DURATION(0, 10 * GP_NS_PER_S), IN(refill_ns)},
	{"slice",           MICROSECONDS(GP_NS_PER_US, 10 * GP_NS_PER_S), IN(slice_us)},
	{"launch",          DURATION(0, 10 * GP_NS_PER_S), IN(launch_ns)},
	{"launch_jitter",   DURATION(0, 10 * GP_NS_PER_S), IN(launch_jitter_ns)},
	{"launch_hinted",   PERCENT, IN(launch_hinted_permille)},
	{"hold",            DURATION(0, 10 * GP_NS_PER_S), IN(hold_ns)},
	{"release",         DURATION(0, 10 * GP_NS_PER_S), IN(release_ns)},
	{"set_slice",       DURATION(0, 10 * GP_NS_PER_S), IN(set_slice_ns)},
	{"slices",          BOOL, IN(slices)},
	{"max_held",        WHOLE(0, 1000000), IN(max_held)},
	{"activity",        WORD(activity_words), IN(activity)},
	{"activity_window", DURATION(GP_NS_PER_MS, 60 * GP_NS_PER_S), IN(activity_window_ns)},
};
#undef IN
/* clang-format on */

static const struct gp_yaml_map device_map = {
	"the device", sizeof device_keys / sizeof *device_keys, device_keys};

int gp_scenario_read_device(struct gp_yaml *y, void *target)
{
	unsigned line[GP_YAML_KEYS_MAX];

	return gp_yaml_read_map(y, &device_map, &((struct reading *)target)->scenario.device, line);
}
#endif
