/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of SMI events are as strict as the driver's, once they are open. */
#include "kfd_world.h"

#include <sys/syscall.h>
#include <linux/capability.h>

#define EVICTIONS (KFD_SMI_BIT(KFD_SMI_QUEUE_EVICTION) | KFD_SMI_BIT(KFD_SMI_QUEUE_RESTORE))
#define RESETS    (KFD_SMI_BIT(KFD_SMI_GPU_PRE_RESET) | KFD_SMI_BIT(KFD_SMI_GPU_POST_RESET))
#define ALL       KFD_SMI_BIT(KFD_SMI_ALL_PROCESS)

static int open_stream(const struct world *w, uint64_t mask)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/smi_51110", w->emu.sysfs);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	if (mask)
		assert_int_equal(write(fd, &mask, sizeof mask), sizeof mask);
	return fd;
}

/* The text in the stream, up to `size` bytes; "" if it is empty: a read never blocks. */
static const char *take(int fd, size_t size)
{
	static char text[2048];
	ssize_t n = read(fd, text, size);

	if (n < 0)
		assert_int_equal(errno, EAGAIN);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void is_record(const char *text, unsigned event, pid_t pid, char last)
{
	unsigned id, gpu;
	unsigned long long at_ns;
	int who;
	char end;

	assert_int_equal(sscanf(text, "%x %llu -%d %x %c", &id, &at_ns, &who, &gpu, &end), 5);
	assert_int_equal(id, event);
	assert_int_equal(who, pid);
	assert_int_equal(gpu, 51110);
	assert_int_equal(end, last);
	assert_true(at_ns > 0);
}

WORLD_TEST(the_ioctl_knows_the_gpu_and_gives_no_file)
{
	struct kfd_smi_events args = {.gpuid = 1};

	assert_int_equal(call(w->fd, KFD_IOC_SMI_EVENTS, &args), -EINVAL);
	args.gpuid = 51110;
	assert_int_equal(call(w->fd, KFD_IOC_SMI_EVENTS, &args), -EOPNOTSUPP);
}

WORLD_TEST(a_stream_says_nothing_before_its_mask_is_set)
{
	int fd = open_stream(w, 0);
	uint32_t half = UINT32_MAX;

	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", getpid()), 0);
	assert_string_equal(take(fd, 1024), "");
	assert_int_equal(write(fd, &half, sizeof half), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", getpid()), 0);
	close(fd);
}

WORLD_TEST(evictions_of_others_need_the_bit_for_all_processes)
{
	pid_t pid = start_load(w, "--queues", "1");
	int mine = open_stream(w, EVICTIONS), all = open_stream(w, EVICTIONS | ALL);

	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", pid), 0);
	assert_string_equal(take(mine, 1024), "");
	is_record(take(all, 1024), KFD_SMI_QUEUE_EVICTION, pid, '0' + KFD_SMI_TRIGGER_TTM);
	assert_int_equal(kfd_emu_control(&w->emu, "put_off %d", pid), 0);
	is_record(take(all, 1024), KFD_SMI_QUEUE_RESTORE, pid, 'R');
	assert_int_equal(kfd_emu_process_sum(&w->emu, pid, "evicted"), 1);
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", pid), 0);
	is_record(take(all, 1024), KFD_SMI_QUEUE_RESTORE, pid, '0');
	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", getpid()), 0);
	is_record(take(mine, 1024), KFD_SMI_QUEUE_EVICTION, getpid(), '2');
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", getpid()), 0);
	close(mine);
	close(all);
}

WORLD_TEST(a_pause_for_a_checkpoint_is_an_eviction)
{
	int fd = open_stream(w, EVICTIONS);
	struct kfd_criu args = {.op = 0}; /* PROCESS_INFO pauses */

	assert_int_equal(call(w->fd, KFD_IOC_CRIU_OP, &args), 0);
	is_record(take(fd, 1024), KFD_SMI_QUEUE_EVICTION, getpid(), '4');
	args = (struct kfd_criu){.op = 2};
	assert_int_equal(call(w->fd, KFD_IOC_CRIU_OP, &args), 0);
	is_record(take(fd, 1024), KFD_SMI_QUEUE_RESTORE, getpid(), '0');
	close(fd);
}

static void set_admin(bool on)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (on)
		data[0].effective |= 1u << CAP_SYS_ADMIN;
	else
		data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

WORLD_TEST(the_capability_counts_when_the_stream_is_opened)
{
	pid_t pid = start_load(w, "--queues", "1");
	int with, without;

	set_admin(false);
	without = open_stream(w, EVICTIONS | ALL);
	set_admin(true);
	with = open_stream(w, EVICTIONS | ALL);
	assert_int_equal(kfd_emu_control(&w->emu, "evict %d", pid), 0);
	assert_string_equal(take(without, 1024), "");
	is_record(take(with, 1024), KFD_SMI_QUEUE_EVICTION, pid, '2');
	assert_int_equal(kfd_emu_control(&w->emu, "restore %d", pid), 0);
	close(with);
	close(without);
}

/* Every client is told of a reset; its evictions follow. */
WORLD_TEST(a_reset_is_told_before_its_evictions)
{
	pid_t pid = start_load(w, "--queues", "1");
	int fd = open_stream(w, RESETS), all = open_stream(w, RESETS | EVICTIONS | ALL);
	const char *text;
	char own[16];

	assert_int_equal(kfd_emu_control(&w->emu, "reset 0 begin"), 0);
	assert_string_equal(take(fd, 1024), "3 1 scheduler\n");
	text = take(all, 1024);
	assert_int_equal(strncmp(text, "3 1 scheduler\n9 ", 16), 0);
	snprintf(own, sizeof own, " -%d ", pid);
	assert_non_null(strstr(text, own));
	assert_int_equal(kfd_emu_control(&w->emu, "reset 0 end"), 0);
	assert_string_equal(take(fd, 1024), "4 1 \n");
	close(fd);
	close(all);
}

WORLD_TEST(a_full_stream_drops_whole_records_and_a_short_read_cuts_them)
{
	pid_t pid = start_load(w, "--queues", "1");
	int fd = open_stream(w, EVICTIONS | ALL);
	char text[2048] = "";

	for (int i = 0; i < 40; i++) {
		assert_int_equal(kfd_emu_control(&w->emu, "evict %d", pid), 0);
		assert_int_equal(kfd_emu_control(&w->emu, "restore %d", pid), 0);
	}
	assert_true(kfd_emu_count(&w->emu, "smi_dropped") > 0);
	strcat(text, take(fd, 7));
	assert_int_equal(strlen(text), 7);
	strcat(text, take(fd, 1024));
	assert_in_range(strlen(text), KFD_SMI_FIFO_SIZE - KFD_SMI_RECORD_SIZE, KFD_SMI_FIFO_SIZE);
	is_record(text, KFD_SMI_QUEUE_EVICTION, pid, '2');
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_string_equal(take(fd, 1024), "");
	close(fd);
}
