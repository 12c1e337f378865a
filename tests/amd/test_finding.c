/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery: GPUs and processes from sysfs, queues from the kernel's debug files, processes that
 * come, go, and reuse a pid; and content that cannot be parsed.
 */
#include <linux/sched.h>
#include <sys/syscall.h>

#include "base/rng.h"
#include "folder.h"
#include "gpu/amd/amd_device.h"

static void write_node(const struct folder *f, unsigned number, uint32_t gpu_id, uint32_t gfx,
		       const char *more)
{
	char name[64];

	snprintf(name, sizeof name, "topology/nodes/%u/gpu_id", number);
	folder_print(f, name, "%u\n", gpu_id);
	snprintf(name, sizeof name, "topology/nodes/%u/name", number);
	folder_print(f, name, "chip%u\n", number);
	snprintf(name, sizeof name, "topology/nodes/%u/properties", number);
	folder_print(f, name, "cpu_cores_count 0\ngfx_target_version %u\n%s", gfx, more);
}

#define DEBUGS "capability 536903808\n" /* 0x20008080 */

TEST(gpus_are_read_as_they_are)
{
	static const struct {
		uint32_t gfx;
		const char *name;
		bool mes, many, occupancy;
	} chip[] = {
		{90006, "gfx906", false, false, true},    {90008, "gfx908", false, false, true},
		{90010, "gfx90a", false, true, true},     {90402, "gfx942", false, true, true},
		{100300, "gfx1030", false, false, false}, {110000, "gfx1100", true, true, false},
		{120001, "gfx1201", true, true, false},
	};
	const unsigned n = sizeof chip / sizeof chip[0];
	struct gp_amd_node node[16];
	struct folder f;
	char text[16];

	folder_make(&f, "GPREEMPT_KFD_SYSFS");
	write_node(&f, 0, 0, 0, "simd_count 0\n"); /* processors */
	write_node(&f, 1, 0, 0, "");
	for (unsigned i = 0; i < n; i++)
		write_node(&f, 2 + i, 1000 + i, chip[i].gfx,
			   DEBUGS "simd_count 416\nsimd_per_cu 4\nnum_xcc 8\nfw_version 78\n");
	assert_int_equal(gp_amd_nodes(node, 16), n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(node[i].number, 2 + i);
		assert_int_equal(node[i].gpu_id, 1000 + i);
		assert_int_equal(node[i].gfx, chip[i].gfx);
		assert_int_equal(node[i].xccs, 8);
		assert_int_equal(node[i].compute_units, 104);
		assert_int_equal(node[i].fw_version, 78);
		assert_string_equal(gp_amd_gfx_name(&node[i], text, sizeof text), chip[i].name);
		assert_int_equal(gp_amd_has_mes(&node[i]), chip[i].mes);
		assert_int_equal(gp_amd_chip_debugs_many(&node[i]), chip[i].many);
		assert_false(gp_amd_debugs_many(&node[i])); /* for the others that cannot */
		assert_int_equal(gp_amd_has_occupancy(&node[i]), chip[i].occupancy);
		assert_true(gp_amd_can_suspend(&node[i]));
	}
	assert_int_equal(gp_amd_nodes(node, 3), n); /* how many there are, whatever the room */
	folder_remove(&f);
}

TEST(a_gpu_without_the_firmware_cannot_suspend)
{
	struct gp_amd_node node[4];
	struct folder f;

	folder_make(&f, "GPREEMPT_KFD_SYSFS");
	write_node(&f, 0, 7, 90402, "capability 32768\n");         /* the driver could */
	write_node(&f, 1, 8, 90402, "capability 536870912\n");     /* the firmware could */
	write_node(&f, 2, 9, 80003, DEBUGS);                       /* too old */
	write_node(&f, 3, 10, 90402, "some_capability 536903808"); /* another word */
	assert_int_equal(gp_amd_nodes(node, 4), 4);
	for (int i = 0; i < 4; i++)
		assert_false(gp_amd_can_suspend(&node[i]));
	folder_remove(&f);
}

TEST(what_is_not_there_is_no_gpu)
{
	struct gp_amd_node node[4];
	struct folder f;

	folder_make(&f, "GPREEMPT_KFD_SYSFS");
	assert_int_equal(gp_amd_nodes(node, 4), -ENOENT);
	folder_print(&f, "topology/nodes/generation", "2");
	assert_int_equal(gp_amd_nodes(node, 4), 0);
	write_node(&f, 0, 0, 0, "");
	assert_int_equal(gp_amd_nodes(node, 4), 0);
	folder_print(&f, "topology/nodes/1/gpu_id", "5"); /* its properties may not be read */
	folder_print(&f, "topology/nodes/2/gpu_id", "garbage");
	folder_print(&f, "topology/nodes/3/gpu_id", "-5");
	folder_write(&f, "topology/nodes/4/gpu_id", "", 0);
	assert_int_equal(gp_amd_nodes(node, 4), 0);
	folder_print(&f, "topology/nodes/5/gpu_id", "5");
	folder_print(&f, "topology/nodes/5/properties", "gfx_target_version\ncapability x\n\n \n");
	assert_int_equal(gp_amd_nodes(node, 4), 1);
	assert_int_equal(node[0].gfx, 0);
	assert_int_equal(node[0].xccs, 1);
	assert_false(gp_amd_can_suspend(&node[0]));
	folder_remove(&f);
}

AMD_TEST(more_gpus_than_we_have_room_for_are_left_out)
{
	struct gp_gpu *gpu = NULL;
	struct folder f;

	folder_make(&f, "GPREEMPT_KFD_SYSFS");
	for (unsigned i = 0; i < 100; i++)
		write_node(&f, i, 1000 + i, 90402, DEBUGS);
	assert_int_equal(gp_amd_ops.probe(), GP_AMD_NODES_MAX);
	assert_int_equal(gp_amd_ops.open(GP_AMD_NODES_MAX, 0, &gpu), -ENODEV);
	assert_int_equal(gp_amd_ops.open(99, 0, &gpu), -ENODEV);
	assert_int_equal(gp_amd_ops.open(UINT32_MAX, 0, &gpu), -ENODEV);
	assert_int_equal(gp_amd_ops.open(GP_AMD_NODES_MAX - 1, 0, &gpu), 0);
	gp_amd_ops.close(gpu);
	folder_remove(&f);
}

AMD_TEST_ON(both_gpus_are_found, two_mi250)
{
	struct gp_gpu *second = NULL, *third = NULL;

	assert_int_equal(gp_amd_ops.probe(), 2);
	aw_open(w);
	assert_int_equal(gp_amd_ops.open(1, 0, &second), 0);
	assert_int_equal(gp_amd_ops.open(2, 0, &third), -ENODEV);
	assert_string_equal(w->gpu->info.name, "AMD gfx90a #0");
	assert_string_equal(second->info.name, "AMD gfx90a #1");
	assert_true(w->gpu->info.caps & GP_CAP_HOLD);
	assert_true(w->gpu->info.max_held > 1000);
	gp_amd_ops.close(second);
}

AMD_TEST(a_gpu_that_is_open_twice_shows_the_same)
{
	struct kfd_load *load = aw_load(w);
	struct gp_gpu *second = NULL;
	struct gp_seen seen[8] = {0};

	aw_open(w);
	assert_int_equal(gp_amd_ops.open(0, 0, &second), 0);
	for (int i = 0; i < 3; i++) {
		TEST_WAIT(gp_gpu_scan(w->gpu, aw_now(), seen, 8) == 1);
		TEST_WAIT(gp_gpu_scan(second, aw_now(), seen, 8) == 1);
		assert_int_equal(seen[0].pid, load->pid);
		emulator_sleep_ms(80); /* and after the next look */
	}
	assert_true(aw_act_on(second, true, aw_attach_on(second, load->pid)).held);
	gp_amd_ops.close(second);
	assert_int_equal(aw_suspended(w, load->pid), 0);
}

struct text {
	char *data;
	size_t size;
	FILE *f;
};

static void text_begin(struct text *t)
{
	t->f = open_memstream(&t->data, &t->size);
	assert_non_null(t->f);
}

static void text_end(struct text *t, const struct folder *f)
{
	fclose(t->f);
	folder_write(f, "mqds", t->data, t->size);
	free(t->data);
}

static uint32_t mqd_dword(unsigned dword, uint64_t ring, uint64_t pointers, uint32_t priority)
{
	uint64_t pair = dword < KFD_MQD_RPTR_REPORT_ADDR ? ring >> 8
			: dword < KFD_MQD_WPTR_POLL_ADDR ? pointers
							 : pointers + 8;

	if (dword == KFD_MQD_QUEUE_PRIORITY)
		return priority;
	if (dword == KFD_MQD_PQ_BASE || dword == KFD_MQD_RPTR_REPORT_ADDR ||
	    dword == KFD_MQD_WPTR_POLL_ADDR)
		return (uint32_t)pair;
	if (dword == KFD_MQD_PQ_BASE + 1 || dword == KFD_MQD_RPTR_REPORT_ADDR + 1 ||
	    dword == KFD_MQD_WPTR_POLL_ADDR + 1)
		return (uint32_t)(pair >> 32);
	return 0xdead0000 + dword;
}

static void text_dump(struct text *t, unsigned dwords, uint64_t ring, uint64_t pointers,
		      uint32_t priority)
{
	for (unsigned i = 0; i < dwords; i++) {
		if (i % 8 == 0)
			fprintf(t->f, "    %.8x:", i * 4);
		fprintf(t->f, " %08x", mqd_dword(i, ring, pointers, priority));
		if (i % 8 == 7 || i == dwords - 1)
			fputc('\n', t->f);
	}
}

TEST(a_dump_is_read_as_it_is)
{
	struct gp_amd_mqd mqd[8];
	struct folder f;
	struct text t;

	folder_make(&f, "GPREEMPT_KFD_DEBUGFS");
	assert_int_equal(gp_amd_read_mqds(12, 0xc7a6, mqd, 8), -ENOENT);
	text_begin(&t);
	text_end(&t, &f);
	assert_int_equal(gp_amd_read_mqds(12, 0xc7a6, mqd, 8), 0); /* nothing in it */

	text_begin(&t);
	fprintf(t.f, "Process 123 PASID 0x8001:\n  Compute queue on device c7a6\n");
	text_dump(&t, 512, 0x1000, 0x2000, 1);
	fprintf(t.f, "Process 12 PASID 0x8002:\n  Compute queue on device c7a6\n");
	for (int xcc = 0; xcc < 8; xcc++) /* of which the first counts */
		text_dump(&t, 512, 0x7f0012345600 + (uint64_t)xcc * 0x100, 0x7f0087654000, 7);
	fprintf(t.f, "  SDMA queue on device c7a6\n");
	for (int xcc = 0; xcc < 8; xcc++)
		text_dump(&t, 128, 0x3000, 0x4000, 3);
	fprintf(t.f, "  Compute queue on device 1002\n"); /* another GPU */
	text_dump(&t, 512, 0x5000, 0x6000, 4);
	fprintf(t.f, "  Compute queue on device c7a6\n");
	text_dump(&t, 512, 0x7f0000abcd00, 0x7f00deadb000, 15);
	fprintf(t.f, "  Compute queue on device c7a6\n");
	text_dump(&t, 100, 0x9000, 0xa000, 5); /* not all of it */
	fprintf(t.f, "Process 1 PASID 0x8003:\n  Compute queue on device c7a6\n");
	text_dump(&t, 512, 0xb000, 0xc000, 6);
	text_end(&t, &f);

	assert_int_equal(gp_amd_read_mqds(12, 0xc7a6, mqd, 8), 2);
	assert_int_equal(mqd[0].ring_address, 0x7f0012345600);
	assert_int_equal(mqd[0].read_address, 0x7f0087654000);
	assert_int_equal(mqd[0].write_address, 0x7f0087654008);
	assert_int_equal(mqd[0].priority, 7);
	assert_int_equal(mqd[1].ring_address, 0x7f0000abcd00);
	assert_int_equal(mqd[1].priority, 15);
	assert_int_equal(gp_amd_read_mqds(12, 0x1002, mqd, 8), 1);
	assert_int_equal(mqd[0].ring_address, 0x5000);
	assert_int_equal(gp_amd_read_mqds(1, 0xc7a6, mqd, 8), 1);
	assert_int_equal(mqd[0].ring_address, 0xb000);
	assert_int_equal(gp_amd_read_mqds(1234, 0xc7a6, mqd, 8), 0);
	mqd[1].ring_address = 1;
	assert_int_equal(gp_amd_read_mqds(12, 0xc7a6, mqd, 1), 2); /* room for one */
	assert_int_equal(mqd[1].ring_address, 1);
	folder_remove(&f);
}

/* Pieces of what it should be, and what never should. */
static void write_garbage(struct text *t, struct gp_rng *rng)
{
	static const char *const piece[] = {
		"Process 12 PASID 0x8001:\n",
		"Process ",
		"Process -1:\n",
		"Process 99999999999999999999:\n",
		"  Compute queue on device c7a6\n",
		"  Compute queue on device ",
		"  SDMA queue on device c7a6\n",
		"    00000000: ",
		"    ffffffffffffffff: 1 2 3\n",
		"    00000000: 00000000 0000",
		"    00000020:",
		"zz zz -1 0x 0xffffffffffffffffffffff ",
		"\n",
		":::: ",
		"\t\t",
	};

	for (unsigned i = 0; i < 40; i++) {
		uint64_t kind = gp_rng_below(rng, 20);

		if (kind < 15)
			fputs(piece[kind], t->f);
		else if (kind == 15)
			text_dump(t, (unsigned)gp_rng_below(rng, 2000), gp_rng_next(rng),
				  gp_rng_next(rng), 1);
		else if (kind == 16)
			for (unsigned k = 0; k < 600; k++) /* a line longer than any room */
				fputs("0000000f ", t->f);
		else
			for (unsigned k = 0; k < 200; k++)
				fputc((int)gp_rng_below(rng, 256), t->f);
	}
}

TEST(garbage_is_survived)
{
	struct gp_amd_mqd mqd[4];
	struct gp_rng rng;
	struct folder f;
	struct text t;

	folder_make(&f, "GPREEMPT_KFD_DEBUGFS");
	gp_rng_init(&rng, 1, 0);
	for (int i = 0; i < 300; i++) {
		text_begin(&t);
		write_garbage(&t, &rng);
		text_end(&t, &f);
		assert_in_range(gp_amd_read_mqds(12, 0xc7a6, mqd, 4), 0, 40);
		assert_in_range(gp_amd_read_mqds(12, 0xc7a6, NULL, 0), 0, 40);
	}
	folder_remove(&f);
}

/* Invalid addresses: the work of this process is unknown, and nothing else happens. */
AMD_TEST(pointers_that_lead_nowhere_tell_nothing)
{
	struct target *t = aw_target_with(w, 1);
	static const uint64_t address[] = {0, 8, 0xffffffffffffff00, 0x7ffffffff000,
					   0xdead00000000};
	struct folder f;

	folder_make(&f, "GPREEMPT_KFD_DEBUGFS");
	for (unsigned i = 0; i < sizeof address / sizeof address[0]; i++) {
		uint64_t gpu_id = kfd_emu_queue_number(&w->emu, t->pid, 0, "gpu_id");
		uint32_t handle = 0;
		struct text text;

		text_begin(&text);
		fprintf(text.f, "Process %d PASID 0x1:\n  Compute queue on device %lx\n", t->pid,
			gpu_id);
		text_dump(&text, 512, 0x1000, address[i], 1);
		text_end(&text, &f);
		handle = aw_attach(w, t->pid);
		gp_gpu_prepare(w->gpu, handle, false);
		emulator_sleep_ms(150);
		assert_false(aw_look(w, handle).known & GP_KNOWN_ACTIVE);
		aw_close(w);
	}
	folder_remove(&f);
}

static int count_process(void *arg, pid_t pid)
{
	pid_t *pids = arg;

	for (int i = 0; i < 8; i++)
		if (!pids[i]) {
			pids[i] = pid;
			break;
		}
	return 0;
}

TEST(what_is_no_process_and_no_queue_is_left_out)
{
	struct gp_amd_sysfs_queue queue[4];
	pid_t pids[8] = {0};
	struct folder f;

	folder_make(&f, "GPREEMPT_KFD_SYSFS");
	assert_int_equal(gp_amd_each_process(count_process, pids), -ENOENT);
	folder_print(&f, "proc/12/queues/0/gpuid", "51110"); /* without a newline, as it is */
	folder_print(&f, "proc/12/queues/0/size", "65536");
	folder_print(&f, "proc/12/queues/0/type", "0");
	folder_print(&f, "proc/12/queues/1/gpuid", "51110");
	folder_print(&f, "proc/12/queues/1/size", "4096");
	folder_print(&f, "proc/12/queues/1/type", "1");
	folder_print(&f, "proc/12/queues/2/gpuid", "51110"); /* is being destroyed */
	folder_print(&f, "proc/12/queues/3/gpuid", "x");
	folder_print(&f, "proc/12/queues/3/size", "x");
	folder_print(&f, "proc/12/queues/3/type", "x");
	folder_print(&f, "proc/12/queues/-4/type", "0");
	folder_print(&f, "proc/12/queues/4x/type", "0");
	folder_print(&f, "proc/12/vram_51110", "123456789012");
	folder_print(&f, "proc/self/queues/0/type", "0");
	folder_print(&f, "proc/99999999999999999999/pasid", "1");
	folder_print(&f, "proc/13/pasid", "1");
	assert_int_equal(gp_amd_each_process(count_process, pids), 0);
	assert_int_equal(pids[0] + pids[1], 25);
	assert_int_equal(pids[2], 0);
	assert_int_equal(gp_amd_sysfs_queues(12, queue, 4), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(queue[i].gpu_id, 51110);
		assert_int_equal(queue[i].size, queue[i].id ? 4096 : 65536);
		assert_int_equal(queue[i].type, queue[i].id);
	}
	assert_int_equal(gp_amd_sysfs_queues(12, NULL, 0), 2);
	assert_int_equal(gp_amd_sysfs_queues(14, queue, 4), -ESRCH);
	assert_int_equal(gp_amd_memory(12, 51110), 123456789012);
	assert_int_equal(gp_amd_memory(12, 1), 0);
	assert_true(gp_amd_occupancy(12, 51110) < 0);
	folder_remove(&f);
}

AMD_TEST(who_does_not_use_a_gpu_is_told_so)
{
	struct target *t = aw_target(w);
	struct gp_error err = {0};
	struct gp_seen seen = {0};

	aw_open(w);
	assert_int_equal(gp_gpu_find(w->gpu, t->pid, &seen, &err), -ENODEV);
	assert_non_null(strstr(err.text, "does not use an AMD GPU"));
	target_do(t, "open"); /* it has the device open, and nothing else */
	err = (struct gp_error){0};
	assert_int_equal(gp_gpu_find(w->gpu, t->pid, &seen, &err), -ENODEV);
	assert_non_null(strstr(err.text, "no compute queue"));
	assert_false(aw_sees(w, t->pid, NULL));
	target_do(t, "queue aql");
	err = (struct gp_error){0};
	assert_int_equal(gp_gpu_find(w->gpu, t->pid, &seen, &err), 0); /* at once */
	assert_int_equal(seen.pid, t->pid);
	assert_int_equal(seen.queue, GP_QUEUE_ALL);
	assert_string_equal(seen.name, "amd-target");
	target_do(t, "destroy 0");
	TEST_WAIT(!aw_sees(w, t->pid, NULL));
	target_kill(t);
	err = (struct gp_error){0};
	assert_int_equal(gp_gpu_find(w->gpu, 0x3ffffe, &seen, &err), -ESRCH);
	assert_true(strlen(err.text) > 10);
}

AMD_TEST(we_are_nobody_to_schedule)
{
	struct gp_seen seen[4];

	aw_open(w); /* by which this process uses the driver */
	assert_int_equal(gp_gpu_scan(w->gpu, aw_now(), seen, 4), 0);
}

AMD_TEST(many_processes_are_found_and_leave)
{
	enum { MANY = 40 };
	struct gp_seen seen[MANY + 8];
	struct target t[MANY];
	int n;

	aw_open(w);
	for (unsigned i = 0; i < MANY; i++) {
		target_start(&t[i]);
		target_do(&t[i], "open");
		target_do(&t[i], "queue aql");
	}
	TEST_WAIT(gp_gpu_scan(w->gpu, aw_now(), seen, MANY + 8) == MANY);
	assert_int_equal(gp_gpu_scan(w->gpu, aw_now(), seen, 5), MANY); /* room for five */
	n = gp_gpu_scan(w->gpu, aw_now(), seen, MANY + 8);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < i; k++)
			assert_true(seen[i].key != seen[k].key && seen[i].pid != seen[k].pid);
	for (unsigned i = 0; i < MANY; i += 2)
		target_kill(&t[i]);
	TEST_WAIT(gp_gpu_scan(w->gpu, aw_now(), seen, MANY + 8) == MANY / 2);
	for (unsigned i = 1; i < MANY; i += 2) {
		assert_true(aw_sees(w, t[i].pid, NULL));
		target_kill(&t[i]);
	}
	TEST_WAIT(!gp_gpu_scan(w->gpu, aw_now(), seen, MANY + 8));
}

/* Whatever becomes of them between two looks. */
AMD_TEST(processes_come_and_go_while_they_are_looked_at)
{
	struct gp_seen seen[16];

	aw_open(w);
	for (unsigned i = 0; i < 25; i++) {
		struct gp_error err = {0};
		struct kfd_load load;
		uint32_t handle = 0;
		pid_t pid;

		assert_int_equal(kfd_load_start(&load, "--queues", "2", NULL), 0);
		pid = load.pid;
		handle = aw_attach(w, pid);
		gp_gpu_prepare(w->gpu, handle, i % 2);
		usleep(i * 300);
		kfd_load_kill(&load);
		if (i % 3)
			gp_gpu_detach(w->gpu, handle);
		assert_int_equal(gp_gpu_find(w->gpu, pid, &seen[0], &err), -ESRCH);
	}
	TEST_WAIT(!gp_gpu_scan(w->gpu, aw_now(), seen, 16));
}

/* As fork(), under this number. */
static pid_t fork_as(const void *pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uintptr_t)pid, .set_tid_size = 1};

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

AMD_TEST(another_process_under_the_same_number_is_another)
{
	struct target *t = aw_target_with(w, 1);
	struct gp_seen first = {0}, second = {0};
	struct gp_observation o;
	uint32_t handle = 0, again = 0;
	pid_t pid;

	pid = t->pid;
	aw_open(w);
	TEST_WAIT(aw_sees(w, pid, &first));
	assert_int_equal(gp_gpu_attach(w->gpu, first.key, &handle), 0);
	target_kill(t);
	emulator_sleep_ms(30); /* start times are told in 1/100 s */
	if (target_start_by(t, fork_as, &pid) != pid) {
		target_forget(t);
		print_message("a process's number cannot be chosen here\n");
		skip();
	}
	target_become_rocm(t, 1);
	o = aw_hold(w, handle); /* of a process that is gone */
	assert_int_equal(o.failed, -ESRCH);
	assert_false(o.held);
	assert_int_equal(aw_suspended(w, pid), 0);
	TEST_WAIT(aw_sees(w, pid, &second) && second.key != first.key);
	assert_int_equal(gp_gpu_attach(w->gpu, second.key, &again), 0);
	aw_must_hold(w, again);
	assert_int_equal(aw_suspended(w, pid), 1);
	assert_false(aw_look(w, handle).held);
}
