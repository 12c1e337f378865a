/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU's schedulers: the group that runs, and that no work is lost. */
#include "rm_world.h"

/* A second compute group of the same client, with one channel. */
static uint32_t second_channel(const struct world *w, uint32_t *group)
{
	*group = make_group(w, NV2080_ENGINE_TYPE_GR0);
	return make_channel(w, *group);
}

WORLD_TEST(held_work_stops_and_goes_on_with_the_right_checksum)
{
	struct emu_query before, after;

	submit(w, w->channel, 400, 2500);
	wait_done(w, w->channel, 4, 1000);
	assert_int_equal(disable(w, w->client, w->channel, true), NV_OK);
	before = wait_done(w, w->channel, 0, 0);
	emulator_sleep_ms(60);
	after = wait_done(w, w->channel, 0, 0);
	assert_true(before.done >= 4 && before.done < 400);
	assert_int_equal(before.done, after.done);
	assert_int_equal(before.run_ns, after.run_ns);
	assert_int_equal(disable(w, w->client, w->channel, false), NV_OK);
	after = wait_done(w, w->channel, 400, 10000);
	assert_int_equal(after.done, 400);
	assert_true(after.digest == digest_of(400, 2500));
}

WORLD_TEST(rewinding_a_channel_loses_work_and_the_checksum_shows_it)
{
	struct nv2080_disable_channels d = {.disable = 1,
					    .rewind_gp_put = 1,
					    .count = 1,
					    .client = {w->client},
					    .channel = {w->channel}};
	struct emu_query query;

	submit(w, w->channel, 400, 5000);
	wait_done(w, w->channel, 1, 1000);
	ask(w, w->subdevice, NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &d);
	disable(w, w->client, w->channel, false);
	query = wait_done(w, w->channel, 400, 300);
	assert_true(query.done < 400);
	assert_true(query.digest != digest_of(400, 5000));
}

WORLD_TEST(disabling_only_scheduling_lets_the_kernel_end)
{
	struct nv2080_disable_channels d = {.disable = 1,
					    .only_disable_scheduling = 1,
					    .count = 1,
					    .client = {w->client},
					    .channel = {w->channel}};

	submit(w, w->channel, 2, 400000);
	emulator_sleep_ms(20);
	ask(w, w->subdevice, NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS, &d);
	assert_int_equal(wait_done(w, w->channel, 2, 900).done, 1);
	disable(w, w->client, w->channel, false);
	assert_true(wait_done(w, w->channel, 2, 5000).digest == digest_of(2, 400000));
}

WORLD_TEST(gpfifo_schedule_is_accepted_and_changes_nothing)
{
	struct nva06c_gpfifo_schedule off = {.enable = 0};

	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &off, 3), NV_OK);
	submit(w, w->channel, 3, 1000);
	assert_int_equal(wait_done(w, w->channel, 3, 1000).done, 3);
}

WORLD_TEST(two_tiny_slices_livelock)
{
	uint32_t group, channel = second_channel(w, &group);
	uint64_t done;

	set_slice(w, w->group, 1);
	set_slice(w, group, 1);
	submit(w, w->channel, 100, 5000);
	submit(w, channel, 100, 5000);
	emulator_sleep_ms(20);
	done = wait_done(w, w->channel, 0, 0).done + wait_done(w, channel, 0, 0).done;
	emulator_sleep_ms(200);
	assert_int_equal(wait_done(w, w->channel, 0, 0).done + wait_done(w, channel, 0, 0).done,
			 done);
	assert_int_equal(disable(w, w->client, channel, true), NV_OK); /* one alone gets on */
	assert_true(wait_done(w, w->channel, 5, 1000).done >= 5);
}

/* What the first and the second group have done, and when that was. */
struct shares {
	uint64_t now_ns, work_ns[2];
};

static struct shares look(const struct world *w)
{
	char *text = emu_state(&w->emu), *at = text;
	struct shares shares = {0};

	assert_int_equal(sscanf(text, "{\"now_ns\":%lu", &shares.now_ns), 1);
	for (int i = 0; i < 2; i++) {
		at = strstr(at, "\"work_ns\":");
		assert_non_null(at);
		at += strlen("\"work_ns\":");
		shares.work_ns[i] = strtoull(at, NULL, 10);
	}
	free(text);
	return shares;
}

/* Of the time, in percent, what both get done together; they must get the same. */
static uint64_t share_with_slices(const struct world *w, uint32_t group, uint64_t us)
{
	struct shares before, after;
	uint64_t first, second;

	set_slice(w, w->group, us);
	set_slice(w, group, us);
	emulator_sleep_ms(20);
	before = look(w);
	emulator_sleep_ms(400);
	after = look(w);
	first = after.work_ns[0] - before.work_ns[0];
	second = after.work_ns[1] - before.work_ns[1];
	assert_in_range(first * 100 / (first + second), 47, 53);
	return (first + second) * 100 / (after.now_ns - before.now_ns);
}

/* Measured on an H200: 90.8, 69.4 and 44.3 %. */
WORLD_TEST(two_groups_share_at_the_cost_of_switches)
{
	uint32_t group, channel = second_channel(w, &group);

	submit(w, w->channel, 1000, 13600);
	submit(w, channel, 1000, 13600);
	assert_in_range(share_with_slices(w, group, 2048), 89, 93);
	assert_in_range(share_with_slices(w, group, 500), 66, 72);
	assert_in_range(share_with_slices(w, group, 200), 42, 47);
}

WORLD_TEST(one_tiny_slice_gives_way_at_once_but_waits_for_nobody_alone)
{
	uint32_t group, channel = second_channel(w, &group);

	set_slice(w, w->group, 1);
	submit(w, w->channel, 1, 5000000);
	emulator_sleep_ms(20);
	submit(w, channel, 1, 100);
	assert_int_equal(wait_done(w, channel, 1, 1000).done, 1);
	assert_int_equal(wait_done(w, w->channel, 0, 0).done, 0); /* its kernel still runs */
}

WORLD_TEST(with_wfi_a_kernel_is_not_interrupted)
{
	uint32_t group, channel = second_channel(w, &group);
	struct nv2080_preemption_mode mode = {.flags = 1, .channel_or_group = w->group};

	set_slice(w, w->group, 1);
	assert_int_equal(ask(w, w->subdevice, NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE, &mode),
			 NV_OK);
	submit(w, w->channel, 1, 600000);
	emulator_sleep_ms(20);
	submit(w, channel, 1, 100);
	assert_int_equal(wait_done(w, channel, 1, 100).done, 0);
	assert_int_equal(wait_done(w, channel, 1, 5000).done, 1);
	assert_int_equal(wait_done(w, w->channel, 1, 0).done, 1);
}

WORLD_TEST(copy_engines_run_beside_the_compute_engine)
{
	uint32_t copy = make_group(w, NV2080_ENGINE_TYPE_COPY0);
	uint32_t channel = make_channel(w, copy);

	submit(w, w->channel, 1, 1000000);
	submit(w, channel, 5, 1000);
	assert_int_equal(wait_done(w, channel, 5, 300).done, 5);
}

WORLD_TEST(a_preempted_group_is_scheduled_again)
{
	struct nva06c_preempt preempt = {.wait = 1};

	submit(w, w->channel, 1, 1000000); /* longer than the slowest machine takes for the calls */
	for (int i = 0; i < 5; i++) {
		emulator_sleep_ms(5);
		assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_PREEMPT, &preempt, 8), NV_OK);
	}
	assert_true(emu_group_sum(&w->emu, getpid(), "preempted") >= 4);
	assert_true(wait_done(w, w->channel, 1, 10000).digest == digest_of(1, 1000000));
	preempt.manual_timeout = 1;
	preempt.timeout_us = 2000000;
	assert_int_equal(control(w, w->group, NVA06C_CTRL_CMD_PREEMPT, &preempt, 8),
			 NV_ERR_INVALID_ARGUMENT);
}

WORLD_TEST(freeing_a_running_group_lets_the_others_run)
{
	uint32_t group, channel = second_channel(w, &group);

	set_slice(w, w->group, 8000000);
	submit(w, w->channel, 10, 1000000);
	emulator_sleep_ms(10);
	submit(w, channel, 1, 1000);
	assert_int_equal(rm_call_free(w->fd, w->client, w->group), NV_OK);
	assert_int_equal(wait_done(w, channel, 1, 1000).done, 1);
}
