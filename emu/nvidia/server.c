/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rm-emu: a folder (FUSE) with a file that stands for /dev/nvidiactl, and files to look at and to
 * disturb what is behind it.
 */
#include <argp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emu/common/fuse_core.h"
#include "work.h"

struct rm rm = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.api = PTHREAD_RWLOCK_INITIALIZER,
	.driver = rm_drivers,
	.gsp = true,
	.next_index = 1,
	.memory_limit = 141ull << 30,
};

uint64_t rm_now_ns(void)
{
	return gp_monotonic_ns();
}

void rm_lock(void)
{
	pthread_mutex_lock(&rm.lock);
	engine_advance(&rm.engine, rm_now_ns());
}

void rm_unlock(void)
{
	pthread_mutex_unlock(&rm.lock);
}

enum { INO_ROOT = FUSE_ROOT_ID, INO_CTL, INO_STATE, INO_COUNTS, INO_CONTROL, INO_END };

static const struct {
	const char *name;
	mode_t mode;
} nodes[INO_END] = {
	[INO_ROOT] = {".", S_IFDIR | 0755},          [INO_CTL] = {"nvidiactl", S_IFREG | 0666},
	[INO_STATE] = {"state", S_IFREG | 0444},     [INO_COUNTS] = {"counts", S_IFREG | 0444},
	[INO_CONTROL] = {"control", S_IFREG | 0600},
};

static enum fuse_kind kind_of(fuse_ino_t ino)
{
	switch (ino) {
	case INO_CTL: return FUSE_DEVICE;
	case INO_CONTROL: return FUSE_CONTROL;
	case INO_STATE:
	case INO_COUNTS: return FUSE_TEXT;
	default: return FUSE_FOLDER;
	}
}

static mode_t mode_of(fuse_ino_t ino)
{
	return nodes[ino < INO_END ? ino : INO_ROOT].mode;
}

static bool child_of(fuse_ino_t folder, uint32_t place, fuse_ino_t *ino, char name[64])
{
	(void)folder; /* there is one */
	*ino = INO_CTL + place;
	if (*ino >= INO_END)
		return false;
	snprintf(name, 64, "%s", nodes[*ino].name);
	return true;
}

static bool print_text(fuse_ino_t ino, FILE *out)
{
	if (ino == INO_STATE)
		state_print(out);
	else
		counts_print(out);
	return true;
}

static int open_device(pid_t thread, void **handle)
{
	(void)thread;
	rm_lock();
	*handle = file_open();
	rm_unlock();
	return *handle ? 0 : -ENOMEM;
}

static void close_device(void *handle)
{
	rm_lock();
	file_close(handle);
	rm_unlock();
}

static struct caller caller_of(fuse_req_t req, void *handle)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct caller){.file = handle, .thread = ctx->pid, .uid = ctx->uid};
}

static bool reply_fault(fuse_req_t req, const struct fault *fault, uint32_t *status)
{
	if (fault->kill)
		kill(fault->kill, SIGKILL);
	if (fault->error) {
		fuse_reply_err(req, fault->error);
		return true;
	}
	*status = fault->status;
	return false;
}

/* `args` is either form; the short one has its status and size elsewhere. */
static void ioctl_alloc(fuse_req_t req, const struct caller *caller, const void *in, size_t size)
{
	struct nv_rm_alloc args = {0};
	struct emu_rm_alloc_short brief;
	struct fault fault;

	memcpy(&args, in, size == sizeof(brief) ? 24 : sizeof(args));
	rm_lock();
	count_call(CMD_ALLOC);
	fault = fault_take(CMD_ALLOC, caller->thread);
	if (!fault.error && !fault.status && !fault.ignore)
		fault.status = rm_alloc(caller, &args);
	rm_unlock();
	if (reply_fault(req, &fault, &args.status))
		return;
	if (size == sizeof(args)) {
		fuse_reply_ioctl(req, 0, &args, sizeof(args));
		return;
	}
	memcpy(&brief, in, sizeof(brief));
	brief.object = args.object;
	brief.status = args.status;
	fuse_reply_ioctl(req, 0, &brief, sizeof(brief));
}

static void ioctl_free(fuse_req_t req, const struct caller *caller, const void *in)
{
	struct nv_rm_free args;
	struct fault fault;

	memcpy(&args, in, sizeof(args));
	rm_lock();
	count_call(CMD_FREE);
	fault = fault_take(CMD_FREE, caller->thread);
	if (!fault.error && !fault.status && !fault.ignore)
		fault.status = rm_free(caller, &args);
	rm_unlock();
	if (!reply_fault(req, &fault, &args.status))
		fuse_reply_ioctl(req, 0, &args, sizeof(args));
}

static void ioctl_control(fuse_req_t req, const struct caller *caller, const void *in)
{
	struct nv_rm_control args;
	int error = 0;

	memcpy(&args, in, sizeof(args));
	args.status = rm_control(caller, &args, &error);
	if (error)
		fuse_reply_err(req, error);
	else
		fuse_reply_ioctl(req, 0, &args, sizeof(args));
}

static void ioctl_emu(fuse_req_t req, const struct caller *caller, unsigned int cmd, const void *in)
{
	union {
		struct emu_submit submit;
		struct emu_query query;
		struct emu_gpus gpus;
		struct emu_processes processes;
	} u;
	size_t out = _IOC_DIR(cmd) & _IOC_READ ? _IOC_SIZE(cmd) : 0;
	int result = 0;

	if (_IOC_DIR(cmd) & _IOC_WRITE)
		memcpy(&u, in, _IOC_SIZE(cmd));
	if (cmd == EMU_SUBMIT)
		result = work_submit(caller, &u.submit);
	else if (cmd == EMU_QUERY)
		result = work_query(caller, &u.query);
	else if (cmd == EMU_GPUS)
		work_gpus(&u.gpus);
	else
		result = work_processes(&u.processes);
	if (result)
		fuse_reply_err(req, -result);
	else
		fuse_reply_ioctl(req, 0, &u, out);
}

static void refuse_ioctl(fuse_req_t req)
{
	rm_lock();
	count_refusal(REFUSED_IOCTL);
	rm_unlock();
	fuse_reply_err(req, EINVAL);
}

static bool is_emu_ioctl(unsigned int cmd)
{
	return cmd == EMU_SUBMIT || cmd == EMU_QUERY || cmd == EMU_GPUS || cmd == EMU_PROCESSES;
}

/* The driver looks at the number and the size only, not at the type and the direction. */
static void ioctl_rm(fuse_req_t req, const struct caller *caller, unsigned int cmd, const void *in)
{
	size_t size = _IOC_SIZE(cmd);
	unsigned int nr = _IOC_NR(cmd);

	if (nr == _IOC_NR(NV_ESC_RM_CONTROL) && size == sizeof(struct nv_rm_control))
		ioctl_control(req, caller, in);
	else if (nr == _IOC_NR(NV_ESC_RM_ALLOC) &&
		 (size == sizeof(struct nv_rm_alloc) || size == sizeof(struct emu_rm_alloc_short)))
		ioctl_alloc(req, caller, in, size);
	else if (nr == _IOC_NR(NV_ESC_RM_FREE) && size == sizeof(struct nv_rm_free))
		ioctl_free(req, caller, in);
	else
		refuse_ioctl(req);
}

static void run_ioctl(fuse_req_t req, void *handle, unsigned int cmd, void *arg, const void *in,
		      size_t in_size, size_t out_size)
{
	struct caller caller = caller_of(req, handle);

	(void)arg;
	if (is_emu_ioctl(cmd))
		ioctl_emu(req, &caller, cmd, in);
	else if (in_size == _IOC_SIZE(cmd) && out_size == _IOC_SIZE(cmd))
		ioctl_rm(req, &caller, cmd, in);
	else
		refuse_ioctl(req);
}

static double keep_s(fuse_ino_t ino)
{
	(void)ino;
	return 60;
}

static const struct fuse_files folder = {
	.keep_s = keep_s,
	.kind = kind_of,
	.mode = mode_of,
	.child = child_of,
	.print = print_text,
	.open_device = open_device,
	.close_device = close_device,
	.ioctl = run_ioctl,
	.control = control_line,
	.lock = rm_lock,
	.unlock = rm_unlock,
};

static struct env {
	const char *mountpoint;
	uint32_t gpus;
	bool h200;
} env = {.gpus = 1};

static const struct argp_option options[] = {
	{"gpus", 'g', "N", 0, "So many GPUs (1)", 0},
	{"version", 'v', "550|570|580|595", 0, "The driver's branch (580)", 0},
	{"client-index", 'i', "N", 0, "Index of the first client (1)", 0},
	{"memory", 'm', "BYTES", 0, "Memory of a GPU (141 GiB)", 0},
	{"h200", 'H', NULL, 0, "Controls take as long as on an H200 (else no time)", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	char line[64];

	switch (key) {
	case 'g': env.gpus = (uint32_t)strtoul(arg, NULL, 0); break;
	case 'm': rm.memory_limit = strtoull(arg, NULL, 0); break;
	case 'H': env.h200 = true; break;
	case 'v':
	case 'i':
		snprintf(line, sizeof(line), "%s %s", key == 'v' ? "version" : "client_index", arg);
		if (control_line(line))
			argp_error(state, "bad value: %s", arg);
		break;
	case ARGP_KEY_ARG:
		if (env.mountpoint)
			argp_usage(state);
		env.mountpoint = arg;
		break;
	case ARGP_KEY_END:
		if (!env.mountpoint || !env.gpus || env.gpus > EMU_MAX_GPUS)
			argp_usage(state);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse_option,
	.args_doc = "MOUNTPOINT",
	.doc = "Stands for NVIDIA's driver: MOUNTPOINT/nvidiactl. Runs until it is unmounted or "
	       "terminated. Writes `ready` when it can be used.\v"
	       "MOUNTPOINT/state is everything as JSON, MOUNTPOINT/counts how often what was "
	       "called. "
	       "MOUNTPOINT/control takes commands, one a line. CMD is a number, a name as in "
	       "counts, `alloc`, `free`, or `any`: every control.\n"
	       "  latency CMD|all|enable TIME     time in the firmware: 273us, 5ms, 0\n"
	       "  fault CMD STATUS COUNT [after N]   answer this status, COUNT times\n"
	       "  errno CMD ERRNO COUNT [after N]    the ioctl itself fails\n"
	       "  ignore CMD COUNT                answer OK and do nothing\n"
	       "  skip MASK COUNT                 `disable` passes over these entries of its "
	       "list\n"
	       "  read_slice US                   read back this slice, whatever it is; 0: the "
	       "true one\n"
	       "  read_channels enabled|disabled  read back this state of every channel\n"
	       "  unsupported CMD                 the driver does not know it\n"
	       "  kill_on CMD PID                 SIGKILL at the next CMD; 0: its caller\n"
	       "  lost GPU                        the GPU is gone for good\n"
	       "  gsp on|off                      there is firmware (on)\n"
	       "  clock_back TIME                 the wall clock of NVML's samples is set back\n"
	       "  api_lock on|off                 slow changes exclude other calls, as in RM "
	       "(off)\n"
	       "  version 550|570|580|595         sizes and version of this branch\n"
	       "  client_index N                  index of the next client\n"
	       "  undo PID                        its slices back to what CUDA sets\n"
	       "  reset_counts, clear_faults",
};

int main(int argc, char **argv)
{
	struct fuse_session *session;
	int result;

	if (argp_parse(&argp, argc, argv, 0, NULL, NULL))
		return 2;
	engine_init(&rm.engine, env.gpus, rm_now_ns());
	for (size_t i = 0; i < EMU_MAX_GPUS; i++)
		pthread_mutex_init(&rm.firmware[i], NULL);
	if (env.h200)
		control_h200();
	session = fuse_core_folder(argv[0], "rm-emu", &folder);
	if (!session || fuse_set_signal_handlers(session))
		return 1;
	if (fuse_session_mount(session, env.mountpoint)) {
		fuse_session_destroy(session);
		return 1;
	}
	result = fuse_core_serve(session);
	fuse_session_unmount(session);
	fuse_remove_signal_handlers(session);
	fuse_session_destroy(session);
	return result < 0;
}
