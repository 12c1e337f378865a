/* SPDX-License-Identifier: Apache-2.0 */
/* The key `device` of a scenario. */
#include <string.h>

#include "sim/scenario/parse_scenario.h"

static const char *const model_words[] = {
	[GP_SIM_RUNLIST] = "runlist",
	[GP_SIM_CWSR] = "cwsr",
	NULL,
};

/* The defaults of each model. */
static const struct gp_sim_device *const defaults[] = {
	[GP_SIM_RUNLIST] = &gp_sim_h200,
	[GP_SIM_CWSR] = &gp_sim_mi300x,
};

static const char *const scheduler_words[] = {
	[GP_SIM_HWS] = "hws",
	[GP_SIM_MES] = "mes",
	NULL,
};

static const char *const activity_words[] = {
	[GP_ACTIVITY_NONE] = "none",
	[GP_ACTIVITY_SAMPLED] = "sampled",
	[GP_ACTIVITY_EXACT] = "exact",
	[GP_ACTIVITY_EVENTS] = "events",
	NULL,
};

static const char *const tells_words[] = {"true", "false",
					  NULL}; /* stored inverted, in hides_run */

#define COST DURATION(0, 10 * GP_NS_PER_S)

/* clang-format off */
enum {
	KEY_MODEL,
	/* of model runlist */
	KEY_SWITCH, KEY_SWITCH_IDLE, KEY_REFILL, KEY_SLICE, KEY_SLICES, KEY_SET_SLICE,
	/* of model cwsr */
	KEY_SCHEDULER, KEY_XCCS, KEY_SAVE_AREA, KEY_SAVE_BANDWIDTH, KEY_GRACE, KEY_UNMAP, KEY_MAP,
	/* of both */
	KEY_LAUNCH, KEY_LAUNCH_JITTER, KEY_LAUNCH_HINTED, KEY_HOLD, KEY_RELEASE, KEY_MAX_HELD,
	KEY_ACTIVITY, KEY_ACTIVITY_WINDOW, KEY_DETECTION, KEY_RUN_TIME, DEVICE_KEYS
};

#define IN(member) AT(struct gp_sim_device, member)
static const struct gp_yaml_key device_keys[] = {
	[KEY_MODEL]           = {"model",           WORD(model_words), IN(model)},
	[KEY_SWITCH]          = {"switch",          COST, IN(switch_ns)},
	[KEY_SWITCH_IDLE]     = {"switch_idle",     COST, IN(switch_idle_ns)},
	[KEY_REFILL]          = {"refill",          COST, IN(refill_ns)},
	[KEY_SLICE]           = {"slice",           MICROSECONDS(GP_NS_PER_US, 10 * GP_NS_PER_S),
						    IN(slice_us)},
	[KEY_SLICES]          = {"slices",          BOOL, IN(slices)},
	[KEY_SET_SLICE]       = {"set_slice",       COST, IN(set_slice_ns)},
	[KEY_SCHEDULER]       = {"scheduler",       WORD(scheduler_words), IN(scheduler)},
	[KEY_XCCS]            = {"xccs",            WHOLE(1, 64), IN(xccs)},
	[KEY_SAVE_AREA]       = {"save_area",       .type = GP_YAML_NUMBER, .max = 1000000,
						    .scale = 1000, .unit = "MB", IN(save_area_kb)},
	[KEY_SAVE_BANDWIDTH]  = {"save_bandwidth",  .type = GP_YAML_NUMBER, .min = 1000,
						    .max = 100000000, .scale = 1000, .unit = "GB/s",
						    IN(save_mb_per_s)},
	[KEY_GRACE]           = {"grace",           DURATION(0, 10 * GP_NS_PER_MS), IN(grace_ns)},
	[KEY_UNMAP]           = {"unmap",           COST, IN(unmap_ns)},
	[KEY_MAP]             = {"map",             COST, IN(map_ns)},
	[KEY_LAUNCH]          = {"launch",          COST, IN(launch_ns)},
	[KEY_LAUNCH_JITTER]   = {"launch_jitter",   COST, IN(launch_jitter_ns)},
	[KEY_LAUNCH_HINTED]   = {"launch_hinted",   PERCENT, IN(launch_hinted_permille)},
	[KEY_HOLD]            = {"hold",            COST, IN(hold_ns)},
	[KEY_RELEASE]         = {"release",         COST, IN(release_ns)},
	[KEY_MAX_HELD]        = {"max_held",        WHOLE(0, 1000000), IN(max_held)},
	[KEY_ACTIVITY]        = {"activity",        WORD(activity_words), IN(activity)},
	[KEY_ACTIVITY_WINDOW] = {"activity_window", DURATION(GP_NS_PER_MS, 60 * GP_NS_PER_S),
						    IN(activity_window_ns)},
	[KEY_DETECTION]       = {"detection",       COST, IN(detect_ns)},
	[KEY_RUN_TIME]        = {"run_time",        WORD(tells_words), IN(hides_run)},
};
#undef IN
/* clang-format on */

_Static_assert(DEVICE_KEYS <= GP_YAML_KEYS_MAX, "gp_yaml_read_map's array of lines");

static const struct gp_yaml_map device_map = {"the device", DEVICE_KEYS, device_keys};

static bool fits(unsigned key, enum gp_sim_model model)
{
	if (key >= KEY_SWITCH && key < KEY_SCHEDULER)
		return model == GP_SIM_RUNLIST;
	return key < KEY_SCHEDULER || key >= KEY_LAUNCH || model == GP_SIM_CWSR;
}

/* The order of the keys must not matter, so the defaults are filled in at the end. */
static int settle(struct gp_yaml *y, struct reading *reading, struct gp_sim_device *given,
		  unsigned line[GP_YAML_KEYS_MAX])
{
	struct gp_sim_device *device = &reading->scenario.device;
	int r = gp_scenario_change(reading, y, "device", &device_map, given, line);

	if (r)
		return r;
	*device = *defaults[given->model];
	for (unsigned i = 0; i < DEVICE_KEYS; i++) {
		const struct gp_yaml_key *k = &device_keys[i];

		if (!line[i])
			continue;
		if (!fits(i, given->model))
			return gp_yaml_fail(y, line[i], "'%s' does not apply to model '%s'",
					    k->name, model_words[given->model]);
		memcpy((char *)device + k->offset, (const char *)given + k->offset, k->size);
	}
	return 0;
}

int gp_scenario_read_device(struct gp_yaml *y, void *target)
{
	struct gp_sim_device given = {0};
	unsigned line[GP_YAML_KEYS_MAX];
	int r = gp_yaml_read_map(y, &device_map, &given, line);

	return r ? r : settle(y, target, &given, line);
}

int gp_scenario_no_device(struct gp_yaml *y, void *target)
{
	struct gp_sim_device given = {0};
	unsigned line[GP_YAML_KEYS_MAX] = {0};

	return settle(y, target, &given, line);
}
