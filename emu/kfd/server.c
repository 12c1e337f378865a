/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kfd-emu: a folder (FUSE) with a file that stands for /dev/kfd, others that stand for its sysfs
 * and debugfs, and files to look at and to disturb what is behind it.
 *
 * Left out: buffer objects (queues use the program's own memory, and a buffer may be larger than
 * its queue needs), events and SVM, doorbells in mapped memory (a FUSE file has no such page: they
 * are written with pwrite), CRIU but for pause and unpause. The stream of SMI events is
 * opened in another way (smi.c). Address watches and launch overrides are remembered, and do
 * nothing.
 */
#include "kfd.h"

#include <argp.h>
#include <signal.h>

struct kfd kfd = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.next_pasid = 0x8001,
	.major = 1,
	.minor = 17,
	.debug_firmware = true,
	.suspend_ns = 100 * GP_NS_PER_US,
	.resume_ns = 50 * GP_NS_PER_US,
	.step_ns = 100 * GP_NS_PER_US,
	.slots = 1,
};

void kfd_lock(void)
{
	pthread_mutex_lock(&kfd.lock);
}

void kfd_unlock(void)
{
	pthread_mutex_unlock(&kfd.lock);
}

uint64_t kfd_now_ns(void)
{
	return gp_monotonic_ns();
}

void kfd_changed(void)
{
	pthread_cond_broadcast(&kfd.changed);
}

void kfd_sleep_ns(uint64_t ns)
{
	struct timespec time = {.tv_sec = (time_t)(ns / GP_NS_PER_S),
				.tv_nsec = (long)(ns % GP_NS_PER_S)};

	if (!ns)
		return;
	kfd_unlock();
	while (nanosleep(&time, &time) && errno == EINTR)
		;
	kfd_lock();
}

/* In small steps, so that the sleeping call can be woken. */
void kfd_delay_ns(uint64_t ns)
{
	uint64_t end_ns = kfd_now_ns() + ns, wakes = kfd.wakes;

	while (kfd.wakes == wakes && kfd_now_ns() < end_ns)
		kfd_sleep_ns(ns < GP_NS_PER_MS ? ns : GP_NS_PER_MS);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	struct call *call = data;

	(void)req;
	kfd_lock();
	call->interrupted = true;
	kfd_changed();
	kfd_unlock();
}

/* Also ends when the folder is unmounted: libfuse waits for its threads. */
static int wait_changes(struct call *call, bool (*is_so)(const void *arg), const void *arg)
{
	while (!is_so(arg)) {
		uint64_t until_ns = kfd_now_ns() + 100 * GP_NS_PER_MS;
		struct timespec until = {.tv_sec = (time_t)(until_ns / GP_NS_PER_S),
					 .tv_nsec = (long)(until_ns % GP_NS_PER_S)};

		if (call->interrupted || fuse_session_exited(kfd.session))
			return -EINTR;
		pthread_cond_timedwait(&kfd.changed, &kfd.lock, &until);
	}
	return 0;
}

int call_wait(struct call *call, bool (*is_so)(const void *arg), const void *arg)
{
	int result;

	kfd_unlock(); /* it may call on_interrupt at once */
	fuse_req_interrupt_func(call->req, on_interrupt, call);
	kfd_lock();
	result = wait_changes(call, is_so, arg);
	kfd_unlock();
	fuse_req_interrupt_func(call->req, NULL, NULL);
	kfd_lock();
	return result;
}

static enum fuse_kind kind_of(fuse_ino_t ino)
{
	struct node node = node_of(ino);

	if (node_is_folder(node))
		return FUSE_FOLDER;
	return node.kind == NODE_KFD       ? FUSE_DEVICE
	       : node.kind == NODE_SMI     ? FUSE_STREAM
	       : node.kind == NODE_CONTROL ? FUSE_CONTROL
					   : FUSE_TEXT;
}

static mode_t mode_of(fuse_ino_t ino)
{
	return node_mode(node_of(ino));
}

static bool child_of(fuse_ino_t folder, uint32_t place, fuse_ino_t *ino, char name[64])
{
	struct node child;

	if (!node_child(node_of(folder), place, &child, name))
		return false;
	*ino = node_ino(child);
	return true;
}

static bool print_text(fuse_ino_t ino, FILE *out)
{
	return node_print(node_of(ino), out);
}

static pid_t process_of(pid_t thread)
{
	struct task task;

	task_read(thread, &task);
	return task.pid;
}

static int open_device(pid_t thread, void **handle)
{
	struct file *file = calloc(1, sizeof(*file));
	pid_t pid = process_of(thread);
	int error;

	if (!file)
		return -ENOMEM;
	kfd_lock();
	processes_bury();
	count_add("open", 1);
	file->process = process_create(pid, &error);
	kfd_unlock();
	if (!file->process) {
		free(file);
		return error;
	}
	*handle = file;
	return 0;
}

static int open_stream(fuse_ino_t ino, pid_t thread, void **handle)
{
	return smi_open(&kfd.device[node_of(ino).index], thread, handle);
}

static void close_device(void *handle)
{
	kfd_lock();
	process_put(((struct file *)handle)->process);
	kfd_unlock();
	free(handle);
}

static struct call call_of(fuse_req_t req, struct file *file)
{
	pid_t thread = fuse_req_ctx(req)->pid;

	return (struct call){.req = req,
			     .file = file,
			     .process = file->process,
			     .thread = thread,
			     .pid = process_of(thread)};
}

/* A doorbell: the queue's write index, written where CREATE_QUEUE said. */
static int write_doorbell(fuse_req_t req, void *handle, size_t size, off_t offset)
{
	struct call call = call_of(req, handle);
	int result;

	if (size != 8)
		return -EINVAL;
	kfd_lock();
	result = call.pid == call.process->pid ? queue_ring(&call, (uint64_t)offset) : -EBADF;
	count_add("doorbells", 1);
	kfd_unlock();
	return result;
}

/*
 * FUSE copies what the user's cmd says; the driver what its own says. Where they differ this reads
 * and writes the caller's memory itself.
 */
static int copy_in(const struct call *call, unsigned int cmd, uint64_t arg, const void *in,
		   void *data)
{
	if (!ioctl_copies_in(cmd))
		return 0;
	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		memcpy(data, in, _IOC_SIZE(cmd));
		return 0;
	}
	return memory_read(call->pid, arg, data, _IOC_SIZE(cmd));
}

static void reply(const struct call *call, unsigned int cmd, uint64_t arg, int result,
		  const void *in, const void *data)
{
	bool copies = ioctl_copies_out(cmd), fuse_copies = _IOC_DIR(cmd) & _IOC_READ;

	if (copies && !fuse_copies && memory_write(call->pid, arg, data, _IOC_SIZE(cmd)))
		result = -EFAULT;
	if (!copies && fuse_copies && _IOC_DIR(cmd) & _IOC_WRITE)
		data = in; /* what it had */
	fuse_reply_ioctl(call->req, result, data, fuse_copies ? _IOC_SIZE(cmd) : 0);
}

static void run_ioctl(fuse_req_t req, void *handle, unsigned int cmd, void *arg, const void *in,
		      size_t in_size, size_t out_size)
{
	uint64_t data[MAX_ARGUMENT / 8] = {0}, address = (uint64_t)(uintptr_t)arg;
	struct call call = call_of(req, handle);
	int result = copy_in(&call, cmd, address, in, data);

	(void)in_size;
	(void)out_size;
	if (!result)
		result = ioctl_run(&call, cmd, data);
	reply(&call, cmd, address, result, in, data);
}

/* Nothing is kept by the kernel: processes and queues come and go. */
/* A process and its queues may be gone at the next moment; the other files are always there. */
static double keep_s(fuse_ino_t ino)
{
	return node_of(ino).pid ? 0 : 60;
}

static const struct fuse_files folder = {
	.keep_s = keep_s,
	.kind = kind_of,
	.mode = mode_of,
	.child = child_of,
	.print = print_text,
	.open_device = open_device,
	.close_device = close_device,
	.write_device = write_doorbell,
	.ioctl = run_ioctl,
	.open_stream = open_stream,
	.close_stream = smi_close,
	.read_stream = smi_read,
	.write_stream = smi_write,
	.control = control_line,
	.lock = kfd_lock,
	.unlock = kfd_unlock,
};

static const char *mountpoint;

enum { OPT_SUSPEND = 256, OPT_RESUME, OPT_STEP, OPT_SLOTS, OPT_RULE, OPT_NO_FW, OPT_POLICY };

static const struct argp_option options[] = {
	{"gpu", 'g', "MODEL", 0, "A GPU: mi250 (default), mi300x, vega20, navi31; several times",
	 0},
	{"suspend-us", OPT_SUSPEND, "US", 0, "A run list without the suspended queues (100)", 0},
	{"resume-us", OPT_RESUME, "US", 0, "Any other run list (50)", 0},
	{"step-us", OPT_STEP, "US", 0, "A step of a packet (100)", 0},
	{"slots", OPT_SLOTS, "N", 0, "Compute queues that run at full speed together (1)", 0},
	{"version", 'v', "A.B", 0, "Of the interface (1.17)", 0},
	{"rule", OPT_RULE, "old|new", 0, "Right to debug: as before or since 6.12.103 (new)", 0},
	{"no-debug-firmware", OPT_NO_FW, NULL, 0, "The firmware cannot be debugged", 0},
	{"sched-policy", OPT_POLICY, "N", 0, "The module's parameter; 2: without HWS (0)", 0},
	{0},
};

static void set(struct argp_state *state, const char *name, const char *arg)
{
	char line[64];

	snprintf(line, sizeof(line), "%s %s", name, arg);
	if (control_line(line))
		argp_error(state, "bad value: %s", arg);
}

static void add_device(struct argp_state *state, const char *option)
{
	static const uint32_t ids[MAX_DEVICES] = {51110, 4098,  33211, 17,
						  60231, 25034, 9001,  44872};
	struct device *d = &kfd.device[kfd.ndevices];
	const struct model *model = model_find(option);

	if (!model || kfd.ndevices == MAX_DEVICES)
		argp_error(state, "no such GPU, or too many: %s", option);
	else
		*d = (struct device){.model = model,
				     .index = kfd.ndevices,
				     .gpu_id = ids[kfd.ndevices],
				     .sizes = model_sizes(model)};
	kfd.ndevices++;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'g': add_device(state, arg); break;
	case OPT_SUSPEND: set(state, "suspend_us", arg); break;
	case OPT_RESUME: set(state, "resume_us", arg); break;
	case OPT_STEP: kfd.step_ns = strtoull(arg, NULL, 0) * GP_NS_PER_US; break;
	case OPT_SLOTS: kfd.slots = (uint32_t)strtoul(arg, NULL, 0); break;
	case 'v': set(state, "version", arg); break;
	case OPT_RULE: set(state, "rule", arg); break;
	case OPT_NO_FW: kfd.debug_firmware = false; break;
	case OPT_POLICY: set(state, "sched_policy", arg); break;
	case ARGP_KEY_ARG:
		if (mountpoint)
			argp_usage(state);
		mountpoint = arg;
		break;
	case ARGP_KEY_END:
		if (!mountpoint || !kfd.slots)
			argp_usage(state);
		if (!kfd.ndevices)
			add_device(state, "mi250");
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "MOUNTPOINT",
	.doc = "Stands for the amdkfd driver: MOUNTPOINT/kfd is /dev/kfd, MOUNTPOINT/sysfs is "
	       "/sys/class/kfd/kfd, MOUNTPOINT/debugfs is /sys/kernel/debug/kfd. Runs until it is "
	       "unmounted or terminated. Writes `ready` when it can be used.\v"
	       "A doorbell is rung with pwrite(kfd, &wptr, 8, doorbell_offset). Queues execute the "
	       "packets of packet.h.\n"
	       "MOUNTPOINT/state is everything as JSON, MOUNTPOINT/counts how often what happened. "
	       "MOUNTPOINT/control takes commands, one a line. NAME is that of a call in counts, "
	       "or `any`; TIME is 5ms, 20us, or a number of us.\n"
	       "  errno NAME ERRNO [COUNT [AFTER]]   the call fails and does nothing\n"
	       "  late_errno NAME ERRNO [COUNT [AFTER]]  the call does its work and then fails\n"
	       "  ignore NAME RESULT [COUNT [AFTER]] the call does nothing and returns RESULT\n"
	       "  result NAME RESULT [COUNT [AFTER]] the call does its work and returns RESULT\n"
	       "  out_count, out_size NAME VALUE [COUNT [AFTER]]  of a snapshot's answer\n"
	       "  out_type, out_gpu NAME VALUE [COUNT [AFTER]]  of the newest queue in a snapshot\n"
	       "  part NAME N [COUNT [AFTER]]        the call acts on its first N queues and "
	       "confirms all\n"
	       "  delay NAME TIME [COUNT [AFTER]]    the call waits before it begins\n"
	       "  kill_on NAME PID [COUNT [AFTER]]   SIGKILL at the call; 0: its caller\n"
	       "  preempt_timeout COUNT [GPU]        COUNT run lists fail; mapped queues stay "
	       "mapped\n"
	       "  reset GPU begin|end                a GPU reset; its processes stay evicted\n"
	       "  evict PID, restore PID             its memory is taken, and given back\n"
	       "  put_off PID                        the driver tries to restore it, in vain\n"
	       "  hold_mutex PID TIME                the process's lock is held for TIME\n"
	       "  runtime_state PID 0..3             gws PID on|off     vram PID BYTES\n"
	       "  rule old|new   version A.B   sched_policy N   suspend_us TIME   resume_us TIME\n"
	       "  wake                               all that are delayed go on at once\n"
	       "  reset_counts, clear_faults",
};

/*
 * libfuse's own handlers set a flag, which its main thread does not see if it is about to wait. Its
 * workers look at it after each request: here is one.
 */
static void *wait_signal(void *arg)
{
	const sigset_t *signals = arg;
	struct stat st;
	char path[256];
	int number;

	if (sigwait(signals, &number))
		return NULL;
	fuse_session_exit(kfd.session);
	snprintf(path, sizeof(path), "%s/state", mountpoint);
	(void)!stat(path, &st);
	return NULL;
}

static int start_threads(sigset_t *signals, pthread_t *waiter)
{
	pthread_condattr_t attributes;

	sigemptyset(signals);
	sigaddset(signals, SIGTERM);
	sigaddset(signals, SIGINT);
	sigaddset(signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, signals, NULL);
	signal(SIGPIPE, SIG_IGN); /* a debugger's pipe may have no reader */
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&kfd.changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (devices_start() || processes_start())
		return -EAGAIN;
	return -pthread_create(waiter, NULL, wait_signal, signals);
}

static void stop_threads(pthread_t waiter)
{
	pthread_cancel(waiter);
	pthread_join(waiter, NULL);
	devices_stop();
	processes_stop();
}

int main(int argc, char **argv)
{
	pthread_t waiter;
	sigset_t signals;
	int result;

	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	kfd.session = fuse_core_folder(argv[0], "kfd-emu", &folder);
	if (!kfd.session || fuse_session_mount(kfd.session, mountpoint))
		return 1;
	if (start_threads(&signals, &waiter))
		return 1;
	result = fuse_core_serve(kfd.session);
	fuse_session_unmount(kfd.session);
	stop_threads(waiter);
	fuse_session_destroy(kfd.session);
	return result < 0;
}
