/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviour that depends on the GPU: preemption, number of debuggers, sysfs and debugfs. */
#include "kfd_world.h"

static uint64_t now_ms(void)
{
	return test_now_ns() / 1000000;
}

/* A bystander on the same device, and how often its queue was taken off by one suspend and resume.
 */
static uint64_t bystander_preemptions(struct world *w)
{
	struct kfd_load bystander;
	pid_t pid = attach_load(w, "2");
	uint32_t ids[2] = {0, 1};
	uint64_t before, after;

	assert_int_equal(kfd_load_start(&bystander, NULL), 0);
	clear_new(w, pid);
	before = kfd_emu_process_sum(&w->emu, bystander.pid, "preempted");
	assert_int_equal(dbg_suspend(w, pid, 0, ids, 2), 2);
	assert_int_equal(dbg_resume(w, pid, ids, 2), 2);
	after = kfd_emu_process_sum(&w->emu, bystander.pid, "preempted");
	assert_int_equal(kfd_load_stop(&bystander), 0);
	assert_int_equal(stop_load(w), 0);
	return after - before;
}

static int set_up_no_firmware(void **state)
{
	return set_up_with(state, "mi250", "--no-debug-firmware", NULL);
}

WORLD_TEST(hws_preempts_everybody_on_the_device)
{
	assert_int_equal(bystander_preemptions(w), 2);
}

MES_TEST(mes_preempts_only_who_is_meant)
{
	assert_int_equal(bystander_preemptions(w), 0);
}

static int set_up_slow(void **state)
{
	return set_up_with(state, "mi250", "--suspend-us", "300ms");
}

static int set_up_slow_mes(void **state)
{
	return set_up_with(state, "navi31", "--suspend-us", "300ms");
}

struct slow {
	const struct world *w;
	pid_t pid;
	int result;
};

static void *suspend_slowly(void *arg)
{
	struct slow *s = arg;
	uint32_t id = 0;

	s->result = dbg_suspend(s->w, s->pid, 0, &id, 1);
	return NULL;
}

/* The packets a bystander gets through while another is being suspended, which takes 300 ms. */
static uint64_t work_during_suspend(struct world *w)
{
	struct kfd_load bystander;
	struct slow slow = {w, attach_load(w, "1"), 0};
	uint64_t before, after, start;
	pthread_t thread;

	assert_int_equal(kfd_load_start(&bystander, NULL), 0);
	clear_new(w, slow.pid);
	start = now_ms();
	assert_int_equal(pthread_create(&thread, NULL, suspend_slowly, &slow), 0);
	while (!kfd_emu_queue_number(&w->emu, slow.pid, 0, "suspended"))
		emulator_sleep_ms(1);
	before = kfd_emu_process_sum(&w->emu, bystander.pid, "run_ns");
	while (kfd_emu_process_number(&w->emu, slow.pid, "locked") && now_ms() < start + 250)
		emulator_sleep_ms(1);
	after = kfd_emu_process_sum(&w->emu, bystander.pid, "run_ns");
	if (now_ms() > start + 290)
		after = before; /* looked too late: says nothing */
	pthread_join(thread, NULL);
	assert_int_equal(slow.result, 1);
	assert_true(now_ms() - start >= 300);
	wait_progress(w, bystander.pid);
	assert_int_equal(kfd_load_stop(&bystander), 0);
	return after - before;
}

WITH_TEST(nobody_runs_while_hws_loads_a_list, set_up_slow)
{
	assert_int_equal(work_during_suspend(w), 0);
}

WITH_TEST(others_run_while_mes_takes_one_off, set_up_slow_mes)
{
	uint64_t ran = 0;

	for (int i = 0; i < 5 && !ran; i++) { /* a slow machine looks too late, but not always */
		ran = work_during_suspend(w);
		kfd_load_kill(&w->load);
	}
	assert_true(ran > 0);
}

static int set_up_two(void **state)
{
	return set_up_with(state, "mi250", "--gpu", "mi250");
}

WITH_TEST(another_device_is_not_touched, set_up_two)
{
	struct kfd_load other;
	pid_t pid = attach_load(w, "1");
	uint32_t id = 0;
	uint64_t before;

	assert_int_equal(kfd_load_start(&other, "--gpu", "1", NULL), 0);
	clear_new(w, pid);
	before = kfd_emu_process_sum(&w->emu, other.pid, "preempted");
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1);
	wait_progress(w, other.pid);
	assert_int_equal(kfd_emu_process_sum(&w->emu, other.pid, "preempted"), before);
	assert_int_equal(kfd_load_stop(&other), 0);
}

static int set_up_vega(void **state)
{
	return set_up_with(state, "vega20", NULL, NULL);
}

WITH_TEST(a_gpu_with_one_debug_slot_has_no_second, set_up_vega)
{
	struct kfd_runtime_info info = {0};
	struct kfd_load second;
	pid_t pid = attach_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(kfd_load_start(&second, "--idle", NULL), 0);
	seize(second.pid);
	assert_int_equal(dbg_enable(w, second.pid, &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_BUSY);
	assert_int_equal(dbg_suspend(w, second.pid, 0, &id, 1), -EPERM);
	assert_int_equal(dbg_disable(w, second.pid), 0);
	assert_int_equal(dbg_disable(w, pid), 0);
	assert_int_equal(dbg_enable(w, second.pid, &info), 0);
	assert_int_equal(info.runtime_state, KFD_RUNTIME_ENABLED);
	kfd_load_kill(&second);
}

WORLD_AND_MES_TEST(others_can_debug_many)
{
	struct kfd_load second;
	pid_t pid = attach_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(kfd_load_start(&second, NULL), 0);
	attach(w, second.pid);
	clear_new(w, pid);
	clear_new(w, second.pid);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1);
	assert_int_equal(dbg_suspend(w, second.pid, 0, &id, 1), 1);
	kfd_load_kill(&second);
}

static const char *read_text(const char *format, ...)
{
	static char text[200000];
	char path[256];
	va_list list;
	ssize_t n, length = 0;
	int fd;

	va_start(list, format);
	vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	while ((n = read(fd, text + length, sizeof(text) - 1 - (size_t)length)) > 0)
		length += n;
	close(fd);
	text[length] = '\0';
	return text;
}

WORLD_TEST(sysfs_has_what_a_process_has)
{
	const char *sysfs = w->emu.sysfs;
	pid_t pid = start_load(w, "--queues", "2");

	assert_string_equal(read_text("%s/proc/%d/queues/0/gpuid", sysfs, pid), "51110");
	assert_string_equal(read_text("%s/proc/%d/queues/1/size", sysfs, pid), "65536");
	assert_string_equal(read_text("%s/proc/%d/queues/1/type", sysfs, pid), "0"); /* AQL too */
	assert_null(read_text("%s/proc/%d/queues/2/type", sysfs, pid));
	assert_int_equal(atoi(read_text("%s/proc/%d/pasid", sysfs, pid)),
			 kfd_emu_process_number(&w->emu, pid, "pasid"));
	assert_string_equal(read_text("%s/proc/%d/stats_51110/evicted_ms", sysfs, pid), "0");
	assert_string_equal(read_text("%s/proc/%d/vram_51110", sysfs, pid), "0");
	assert_string_equal(read_text("%s/topology/nodes/0/gpu_id", sysfs), "0\n");
	assert_string_equal(read_text("%s/topology/nodes/1/gpu_id", sysfs), "51110\n");
	assert_non_null(strstr(read_text("%s/topology/nodes/1/properties", sysfs),
			       "gfx_target_version 90010\n"));
}

/* cu_occupancy is of gfx9 only; evicted_ms counts what memory pressure took, no suspension. */
WORLD_TEST(sysfs_statistics)
{
	const char *sysfs = w->emu.sysfs;
	pid_t pid = attach_seen_load(w, "1");
	uint32_t id = 0;

	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1);
	assert_string_equal(read_text("%s/proc/%d/stats_51110/cu_occupancy", sysfs, pid), "0");
	emulator_sleep_ms(5);
	assert_int_equal(dbg_resume(w, pid, &id, 1), 1);
	for (int i = 0; i < 4000; i++)
		if (strcmp(read_text("%s/proc/%d/stats_51110/cu_occupancy", sysfs, pid), "0") != 0)
			break;
	assert_string_equal(read_text("%s/proc/%d/stats_51110/evicted_ms", sysfs, pid), "0");
	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", pid), 0);
	emulator_sleep_ms(20);
	assert_string_equal(read_text("%s/proc/%d/stats_51110/evicted_ms", sysfs, pid), "0");
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", pid), 0);
	assert_in_range(atoi(read_text("%s/proc/%d/stats_51110/evicted_ms", sysfs, pid)), 20,
			60000);
}

MES_TEST(gfx11_has_no_occupancy)
{
	assert_non_null(read_text("%s/proc/%d/stats_51110/evicted_ms", w->emu.sysfs, getpid()));
	assert_null(read_text("%s/proc/%d/stats_51110/cu_occupancy", w->emu.sysfs, getpid()));
}

WITH_TEST(firmware_that_cannot_be_debugged_shows, set_up_no_firmware)
{
	const char *at =
		strstr(read_text("%s/topology/nodes/1/properties", w->emu.sysfs), "\ncapability ");

	assert_non_null(at);
	assert_int_equal(strtoul(at + 12, NULL, 10) & KFD_CAP_DEBUG, KFD_CAP_TRAP_DEBUG_SUPPORT);
}

/* The dword of the first queue in `mqds`; queues are told apart by nothing else. */
static uint32_t mqd_dword(const char *mqds, uint32_t dword)
{
	char line[32];
	const char *at;

	snprintf(line, sizeof(line), "    %.8x: ", dword / 8 * 32);
	at = strstr(mqds, line);
	assert_non_null(at);
	return (uint32_t)strtoul(at + strlen(line) + (size_t)(dword % 8) * 9, NULL, 16);
}

static const char *mqds_of(const struct world *w, pid_t pid)
{
	char head[128];
	const char *mqds = read_text("%s/mqds", w->emu.debugfs);

	snprintf(head, sizeof(head), "Process %d PASID 0x%x:\n  Compute queue on device c7a6\n",
		 pid, (unsigned)kfd_emu_process_number(&w->emu, pid, "pasid"));
	mqds = strstr(mqds, head);
	assert_non_null(mqds);
	return mqds;
}

WORLD_TEST(debugfs_has_descriptors_without_names)
{
	struct kfd_queue_snapshot_entry entry = {0};
	const char *mqds;
	pid_t pid = attach_load(w, "1");

	assert_int_equal(dbg_snapshot(w, pid, 0, &entry, 1), 1);
	mqds = mqds_of(w, pid);
	assert_int_equal(((uint64_t)mqd_dword(mqds, KFD_MQD_PQ_BASE + 1) << 32 |
			  mqd_dword(mqds, KFD_MQD_PQ_BASE))
				 << 8,
			 entry.ring_base_address);
	assert_int_equal((uint64_t)mqd_dword(mqds, KFD_MQD_WPTR_POLL_ADDR + 1) << 32 |
				 mqd_dword(mqds, KFD_MQD_WPTR_POLL_ADDR),
			 entry.write_pointer_address);
	assert_int_equal(mqd_dword(mqds, KFD_MQD_HQD_ACTIVE), 1);
	assert_int_equal(mqd_dword(mqds, KFD_MQD_QUEUE_PRIORITY), 7);
	assert_int_equal(mqd_dword(mqds, KFD_MQD_PIPE_PRIORITY), 1);
	assert_non_null(strstr(read_text("%s/hqds", w->emu.debugfs), "Node 1, gpu_id c7a6:\n"));
	assert_null(strstr(read_text("%s/rls", w->emu.debugfs), "No active runlist"));
}

/* The pointers in a descriptor are those of the last time the queue was taken off. */
WORLD_TEST(descriptors_are_old_while_a_queue_runs)
{
	pid_t pid = attach_load(w, "1");
	uint32_t id = 0;

	wait_progress(w, pid);
	assert_true(mqd_dword(mqds_of(w, pid), KFD_MQD_PQ_RPTR) + 20 <=
		    kfd_emu_queue_number(&w->emu, pid, 0, "rptr"));
	clear_new(w, pid);
	assert_int_equal(dbg_suspend(w, pid, 0, &id, 1), 1);
	assert_int_equal(mqd_dword(mqds_of(w, pid), KFD_MQD_PQ_RPTR),
			 kfd_emu_queue_number(&w->emu, pid, 0, "rptr"));
	assert_int_equal(mqd_dword(mqds_of(w, pid), KFD_MQD_HQD_ACTIVE), 0);
}
