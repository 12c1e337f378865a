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

static struct stat node_stat(fuse_ino_t ino)
{
	return (struct stat){.st_ino = ino, .st_mode = nodes[ino].mode, .st_nlink = 1};
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent;
	for (fuse_ino_t ino = INO_CTL; ino < INO_END; ino++)
		if (!strcmp(name, nodes[ino].name)) {
			struct fuse_entry_param entry = {.ino = ino,
							 .attr = node_stat(ino),
							 .attr_timeout = 60,
							 .entry_timeout = 60};

			fuse_reply_entry(req, &entry);
			return;
		}
	fuse_reply_err(req, ENOENT);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = node_stat(ino < INO_END ? ino : INO_ROOT);

	(void)fi;
	fuse_reply_attr(req, &st, 60);
}

/* For O_TRUNC, as a shell opens files. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	on_getattr(req, ino, fi);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	char buffer[1024];
	size_t used = 0;

	(void)ino;
	(void)fi;
	if (size > sizeof(buffer))
		size = sizeof(buffer);
	for (fuse_ino_t i = (fuse_ino_t)offset + INO_ROOT; i < INO_END; i++) {
		struct stat st = node_stat(i);
		size_t need = fuse_add_direntry(req, buffer + used, size - used, nodes[i].name, &st,
						(off_t)i);

		if (need > size - used)
			break;
		used += need;
	}
	fuse_reply_buf(req, buffer, used);
}

static struct fuse_text *text_open(fuse_ino_t ino)
{
	struct fuse_text *text = fuse_text_new();

	if (text)
		text->data =
			ino == INO_STATE ? state_json(&text->length) : state_counts(&text->length);
	return text;
}

static void *handle_open(fuse_ino_t ino)
{
	void *file;

	if (ino != INO_CTL)
		return text_open(ino);
	rm_lock();
	file = file_open();
	rm_unlock();
	return file;
}

static void handle_close(fuse_ino_t ino, uint64_t handle)
{
	void *file = (void *)(uintptr_t)handle;

	if (ino == INO_STATE || ino == INO_COUNTS) {
		fuse_text_free(file);
	} else if (ino == INO_CTL) {
		rm_lock();
		file_close(file);
		rm_unlock();
	}
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fi->direct_io = 1;
	if (ino != INO_CONTROL) {
		fi->fh = (uint64_t)(uintptr_t)handle_open(ino);
		if (!fi->fh) {
			fuse_reply_err(req, ENOMEM);
			return;
		}
	}
	if (fuse_reply_open(req, fi) == -ENOENT)
		handle_close(ino, fi->fh); /* the opener was interrupted: no release will come */
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	handle_close(ino, fi->fh);
	fuse_reply_err(req, 0);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	if (ino != INO_STATE && ino != INO_COUNTS)
		fuse_reply_err(req, EINVAL);
	else
		fuse_text_reply(req, (const struct fuse_text *)(uintptr_t)fi->fh, size, offset);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	int result = ino == INO_CONTROL ? fuse_core_control(data, size, control_line) : -EINVAL;

	(void)offset;
	(void)fi;
	fuse_core_reply_write(req, result, size);
}

/* The process of a thread; they differ where a thread other than the first one calls. */
static pid_t thread_group(pid_t thread)
{
	char path[64], line[128];
	int pid = thread;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	status = fopen(path, "re");
	if (!status)
		return thread;
	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "Tgid: %d", &pid) == 1)
			break;
	fclose(status);
	return pid;
}

static struct caller caller_of(fuse_req_t req, const struct fuse_file_info *fi)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct caller){.file = (struct file *)(uintptr_t)fi->fh,
			       .thread = ctx->pid,
			       .pid = thread_group(ctx->pid),
			       .uid = ctx->uid};
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
	fault = fault_take(CMD_ALLOC, caller->pid);
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
	fault = fault_take(CMD_FREE, caller->pid);
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

static void on_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
		     struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		     size_t out_size)
{
	struct caller caller;

	(void)arg;
	(void)flags;
	if (ino != INO_CTL) {
		fuse_reply_err(req, ENOTTY);
		return;
	}
	caller = caller_of(req, fi);
	if (is_emu_ioctl(cmd))
		ioctl_emu(req, &caller, cmd, in);
	else if (in_size == _IOC_SIZE(cmd) && out_size == _IOC_SIZE(cmd))
		ioctl_rm(req, &caller, cmd, in);
	else
		refuse_ioctl(req);
}

static const struct fuse_lowlevel_ops operations = {
	.init = fuse_core_ready,
	.lookup = on_lookup,
	.getattr = on_getattr,
	.setattr = on_setattr,
	.readdir = on_readdir,
	.open = on_open,
	.release = on_release,
	.read = on_read,
	.write = on_write,
	.ioctl = on_ioctl,
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
	       "  unsupported CMD                 the driver does not know it\n"
	       "  kill_on CMD PID                 SIGKILL at the next CMD; 0: its caller\n"
	       "  lost GPU                        the GPU is gone for good\n"
	       "  gsp on|off                      there is firmware (on)\n"
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
	session = fuse_core_session(argv[0], "rm-emu", &operations);
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
