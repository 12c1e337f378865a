/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/nvidia/rm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define BUSY_TRIES        20
#define BUSY_PAUSE_NS     250000
#define INTERRUPTS_MAX    100
#define OWN_BITS          (GP_RM_ERRNO | GP_RM_NO_EFFECT | GP_RM_UNREAD)
#define UNSUPPORTED_TRIES 3 /* a driver without a call says so each time */

const char *gp_rm_path(void)
{
	const char *path = secure_getenv("GPREEMPT_NVIDIACTL");

	return path && *path ? path : NV_CTL_DEVICE;
}

static bool is_control(const struct stat *s)
{
	const char *path = gp_rm_path();
	struct stat ours;

	if (!strcmp(path, NV_CTL_DEVICE))
		return S_ISCHR(s->st_mode) && s->st_rdev == makedev(NV_MAJOR, NV_CTL_DEVICE_MINOR);
	return !stat(path, &ours) && ours.st_dev == s->st_dev && ours.st_ino == s->st_ino;
}

bool gp_rm_is_control_fd(int fd)
{
	struct stat s;

	return !fstat(fd, &s) && is_control(&s);
}

/* Repeats a call that a signal interrupted. `status` points into `arg`. RM has no statuses with the
 * bits that this code uses for its own; such a status is only known to be an error. */
static uint32_t call_rm(int fd, unsigned long request, void *arg, const uint32_t *status)
{
	int r = ioctl(fd, request, arg);

	for (int i = 0; r < 0 && (errno == EINTR || errno == EAGAIN) && i < INTERRUPTS_MAX; i++)
		r = ioctl(fd, request, arg);
	if (r < 0)
		return GP_RM_ERRNO | (uint32_t)errno;
	return *status & OWN_BITS ? NV_ERR_GENERIC : *status;
}

static uint32_t control_once(int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params,
			     uint32_t size)
{
	struct nv_rm_control c = {
		.client = client,
		.object = object,
		.cmd = cmd,
		.params = (uint64_t)(uintptr_t)params,
		.params_size = size,
	};

	return call_rm(fd, NV_ESC_RM_CONTROL, &c, &c.status);
}

uint32_t gp_rm_control(int fd, uint32_t client, uint32_t object, uint32_t cmd, void *params,
		       uint32_t size)
{
	const struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};
	uint32_t status = control_once(fd, client, object, cmd, params, size);

	for (int i = 0; i < BUSY_TRIES && status == NV_ERR_BUSY_RETRY; i++) {
		nanosleep(&pause, NULL);
		status = control_once(fd, client, object, cmd, params, size);
	}
	return status;
}

bool gp_rm_is_gone(uint32_t status)
{
	return status == NV_ERR_INVALID_CLIENT || status == NV_ERR_OBJECT_NOT_FOUND ||
	       status == NV_ERR_INVALID_OBJECT_HANDLE;
}

/* No object has the class or the parent 0: such an answer says nothing. A file that was opened with
 * O_PATH, as gpreempt's own processes do, reaches no object. */
static uint32_t named(uint32_t status, uint64_t value)
{
	if (gp_rm_is_gone(status) || status == NV_ERR_INSUFFICIENT_PERMISSIONS ||
	    status == (GP_RM_ERRNO | EBADF))
		return 0;
	return status || !value ? GP_RM_UNKNOWN : (uint32_t)value;
}

static uint32_t handle_info(int fd, uint32_t client, uint32_t object, uint32_t index)
{
	struct nv0000_handle_info p = {.object = object, .index = index};
	uint32_t status = gp_rm_control(fd, client, client, NV0000_CTRL_CMD_CLIENT_GET_HANDLE_INFO,
					&p, sizeof p);

	return named(status, p.value);
}

uint32_t gp_rm_class(int fd, uint32_t client, uint32_t object)
{
	return handle_info(fd, client, object, NV0000_HANDLE_INFO_CLASSID);
}

uint32_t gp_rm_parent(int fd, uint32_t client, uint32_t object)
{
	return handle_info(fd, client, object, NV0000_HANDLE_INFO_PARENT);
}

uint32_t gp_rm_child(int fd, uint32_t client, uint32_t parent, uint32_t kind)
{
	struct nv0000_child_handle p = {.parent = parent, .kind = kind};
	uint32_t status = gp_rm_control(fd, client, client, NV0000_CTRL_CMD_CLIENT_GET_CHILD_HANDLE,
					&p, sizeof p);

	return named(status, p.object);
}

static const struct {
	uint32_t status;
	int error;
	const char *name;
} codes[] = {
#define CODE(status, error)            \
	{                              \
		status, error, #status \
	}
	CODE(NV_OK, 0),
	CODE(NV_ERR_BUSY_RETRY, EBUSY),
	CODE(NV_ERR_GPU_IS_LOST, ENODEV),
	CODE(NV_ERR_GPU_IN_FULLCHIP_RESET, ENODEV),
	CODE(NV_ERR_IN_USE, EBUSY),
	CODE(NV_ERR_INSERT_DUPLICATE_NAME, EEXIST),
	CODE(NV_ERR_INSUFFICIENT_RESOURCES, ENOSPC),
	CODE(NV_ERR_INSUFFICIENT_PERMISSIONS, EPERM),
	CODE(NV_ERR_INVALID_ADDRESS, EFAULT),
	CODE(NV_ERR_INVALID_ARGUMENT, EINVAL),
	CODE(NV_ERR_INVALID_CHANNEL, ENXIO),
	CODE(NV_ERR_INVALID_CLASS, ENOTSUP),
	CODE(NV_ERR_INVALID_CLIENT, ENXIO),
	CODE(NV_ERR_INVALID_OBJECT, ENXIO),
	CODE(NV_ERR_INVALID_OBJECT_HANDLE, ENXIO),
	CODE(NV_ERR_INVALID_OBJECT_PARENT, EINVAL),
	CODE(NV_ERR_INVALID_PARAM_STRUCT, EINVAL),
	CODE(NV_ERR_INVALID_POINTER, EFAULT),
	CODE(NV_ERR_INVALID_STATE, EBUSY),
	CODE(NV_ERR_NO_MEMORY, ENOMEM),
	CODE(NV_ERR_NOT_SUPPORTED, ENOTSUP),
	CODE(NV_ERR_OBJECT_NOT_FOUND, ENXIO),
	CODE(NV_ERR_RESET_REQUIRED, ENODEV),
	CODE(NV_ERR_STATE_IN_USE, EBUSY),
	CODE(NV_ERR_TIMEOUT, ETIMEDOUT),
	CODE(NV_ERR_TIMEOUT_RETRY, ETIMEDOUT),
	CODE(NV_ERR_GENERIC, EIO),
#undef CODE
};

const char *gp_rm_status_name(uint32_t status)
{
	static _Thread_local char text[128], reading[32];

	if (status & GP_RM_UNREAD) {
		snprintf(reading, sizeof reading, "%s", gp_rm_status_name(status & ~GP_RM_UNREAD));
		snprintf(text, sizeof text,
			 "the driver accepted the call, but its effect cannot be read back: %s",
			 reading);
		return text;
	}
	if (status & GP_RM_ERRNO)
		return gp_error_name(-(int)(status & ~GP_RM_ERRNO));
	if (status == GP_RM_NO_EFFECT)
		return "the driver accepted the call, but reads back the old state";
	if (status == GP_RM_PARTLY)
		return "the driver accepted the call, but did it for a part of the channels only";
	if (status == GP_RM_UNSEEN)
		return "the driver accepted the release, but does not tell the state of channels, "
		       "and no work of the process was seen since";
	for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].status == status)
			return codes[i].name;
	snprintf(text, sizeof text, "RM status 0x%x", status);
	return text;
}

int gp_rm_errno(uint32_t status)
{
	if (status == GP_RM_UNSEEN)
		return -ETIME;
	if (gp_rm_is_unproven(status))
		return -EIO;
	if (status & GP_RM_ERRNO)
		return -(int)(status & ~GP_RM_ERRNO);
	for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++)
		if (codes[i].status == status)
			return -codes[i].error;
	return -EIO;
}

uint32_t gp_rm_alloc(int fd, uint32_t client, uint32_t parent, uint32_t *handle, uint32_t class,
		     void *params, uint32_t size)
{
	struct nv_rm_alloc a = {
		.root = client,
		.parent = parent,
		.object = *handle,
		.class = class,
		.params = (uint64_t)(uintptr_t)params,
		.params_size = size,
	};
	uint32_t status;

	status = call_rm(fd, NV_ESC_RM_ALLOC, &a, &a.status);

	*handle = status ? 0 : a.object;
	return status;
}

uint32_t gp_rm_free(int fd, uint32_t client, uint32_t parent, uint32_t handle)
{
	struct nv_rm_free f = {.root = client, .parent = parent, .object = handle};

	return call_rm(fd, NV_ESC_RM_FREE, &f, &f.status);
}

static uint32_t make_client(int fd, uint32_t *client)
{
	*client = 0;
	return gp_rm_alloc(fd, 0, 0, client, NV01_ROOT_CLIENT, NULL, 0);
}

/* Drivers before 570 return a shorter structure with the same beginning. */
static void read_version(struct gp_rm *rm)
{
	struct nv0000_build_version v = {0};
	uint32_t status;

	status = gp_rm_control(rm->fd, rm->client, rm->client,
			       NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, &v, sizeof v);
	if (status)
		status = gp_rm_control(rm->fd, rm->client, rm->client,
				       NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, &v,
				       NV0000_BUILD_VERSION_SIZE_OLD);
	v.driver_version[sizeof v.driver_version - 1] = 0;
	snprintf(rm->version, sizeof rm->version, "%.31s", status ? "" : v.driver_version);
}

int gp_rm_open(struct gp_rm *rm, struct gp_error *err)
{
	const char *path = gp_rm_path();
	uint32_t status;

	*rm = (struct gp_rm){.fd = open(path, O_RDWR | O_CLOEXEC), .gpu_fd = -1};
	if (rm->fd < 0 && (errno == ENOENT || errno == ENXIO || errno == ENODEV))
		return gp_fail(err, -ENODEV, "no NVIDIA driver here (%s: %s)", path,
			       gp_error_name(-errno));
	if (rm->fd < 0)
		return gp_fail(err, -errno, "cannot open %s: %s", path, gp_error_name(-errno));
	status = make_client(rm->fd, &rm->client);
	if (status) {
		close(rm->fd);
		rm->fd = -1;
		return gp_fail(err, gp_rm_errno(status),
			       "the NVIDIA driver refuses a client on %s: %s", path,
			       gp_rm_status_name(status));
	}
	read_version(rm);
	return 0;
}

void gp_rm_close(struct gp_rm *rm)
{
	if (rm->fd >= 0)
		close(rm->fd); /* frees the client, too */
	if (rm->gpu_fd >= 0)
		close(rm->gpu_fd);
	rm->fd = rm->gpu_fd = -1;
}

uint32_t gp_rm_newest(const struct gp_rm *rm)
{
	uint32_t client;

	if (make_client(rm->fd, &client))
		return 0;
	gp_rm_free(rm->fd, client, client, client);
	return client;
}

int gp_rm_gpus(const struct gp_rm *rm, uint32_t gpu_id[32])
{
	struct nv0000_probed_ids p;
	uint32_t status;
	int n = 0;

	memset(&p, 0xff, sizeof p);
	status = gp_rm_control(rm->fd, rm->client, rm->client, NV0000_CTRL_CMD_GPU_GET_PROBED_IDS,
			       &p, sizeof p);
	if (status == NV_ERR_INVALID_ARGUMENT || status == NV_ERR_INVALID_PARAM_STRUCT)
		status = gp_rm_control(rm->fd, rm->client, rm->client,
				       NV0000_CTRL_CMD_GPU_GET_PROBED_IDS, &p,
				       NV0000_PROBED_IDS_SIZE_OLD);
	if (status)
		return gp_rm_errno(status);
	while (n < 32 && p.gpu_id[n] != NV0000_CTRL_GPU_INVALID_ID) {
		gpu_id[n] = p.gpu_id[n];
		n++;
	}
	return n;
}

bool gp_rm_pci(const struct gp_rm *rm, uint32_t gpu_id, char out[16])
{
	struct nv0000_pci_info p = {.gpu_id = gpu_id};

	if (gp_rm_control(rm->fd, rm->client, rm->client, NV0000_CTRL_CMD_GPU_GET_PCI_INFO, &p,
			  sizeof p))
		return false;
	snprintf(out, 16, "%04x:%02x:%02x.0", p.domain & 0xffff, p.bus & 0xff, p.slot & 0xff);
	return true;
}

/* Opens /dev/nvidiaN of the GPU at a PCI address. An emulated control file has no such file. */
static int open_gpu_file(const char *pci)
{
	char path[96], line[128];
	long minor = -1;
	FILE *f;

	if (strcmp(gp_rm_path(), NV_CTL_DEVICE) != 0)
		return -1;
	snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", pci);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "Device Minor:", 13))
			minor = strtol(line + 13, NULL, 10);
	fclose(f);
	snprintf(path, sizeof path, "/dev/nvidia%ld", minor);
	return minor < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC);
}

static uint32_t open_diag(struct gp_rm *rm)
{
	return gp_rm_alloc(rm->fd, rm->client, rm->subdevice, &rm->diag, NV20_SUBDEVICE_DIAG, NULL,
			   0);
}

/* Opens what is not open yet. */
static uint32_t open_gpu(struct gp_rm *rm, const char *pci)
{
	struct nv0000_id_info id = {.gpu_id = rm->gpu_id};
	struct nv0080_alloc device = {0};
	struct nv2080_alloc subdevice = {0};
	uint32_t status;

	if (rm->gpu_fd < 0)
		rm->gpu_fd = open_gpu_file(pci); /* RM allocates no device without it */
	status = gp_rm_control(rm->fd, rm->client, rm->client, NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2,
			       &id, sizeof id);
	device.device_id = id.device_instance;
	subdevice.subdevice_id = id.subdevice_instance;
	if (!status && !rm->device)
		status = gp_rm_alloc(rm->fd, rm->client, rm->client, &rm->device, NV01_DEVICE_0,
				     &device, sizeof device);
	if (!status)
		status = gp_rm_alloc(rm->fd, rm->client, rm->device, &rm->subdevice,
				     NV20_SUBDEVICE_0, &subdevice, sizeof subdevice);
	return status;
}

int gp_rm_open_gpu(struct gp_rm *rm, uint32_t gpu_id, struct gp_error *err)
{
	char pci[16] = "";
	uint32_t status;

	rm->gpu_id = gpu_id;
	gp_rm_pci(rm, gpu_id, pci);
	status = open_gpu(rm, pci);
	if (status)
		return gp_fail(err, gp_rm_errno(status), "the driver gives no access to GPU %s: %s",
			       pci, gp_rm_status_name(status));
	open_diag(rm);
	return 0;
}

/* RM lists the processes with objects of one class. Each GPU generation has its own class. */
int gp_rm_pids(const struct gp_rm *rm, struct nv2080_pids *pids)
{
	static const uint32_t compute_class[] = {0xcec0, 0xcdc0, 0xcbc0, 0xc9c0,
						 0xc7c0, 0xc6c0, 0xc5c0, 0xc3c0};

	if (!rm->subdevice)
		return -ENOTSUP;
	for (unsigned i = 0; i < sizeof compute_class / sizeof *compute_class; i++) {
		uint32_t status;

		*pids = (struct nv2080_pids){.id = compute_class[i]};
		status = gp_rm_control(rm->fd, rm->client, rm->subdevice,
				       NV2080_CTRL_CMD_GPU_GET_PIDS, pids, sizeof *pids);
		if (status)
			return gp_rm_errno(status);
		if (pids->count && pids->count <= NV2080_GET_PIDS_MAX)
			return (int)pids->count;
	}
	return 0;
}

int gp_rm_lists(const struct gp_rm *rm, pid_t pid)
{
	struct nv2080_pids pids;
	int n = gp_rm_pids(rm, &pids);

	for (int i = 0; i < n; i++)
		if (pids.pid[i] == (uint32_t)pid)
			return 1;
	return n < 0 ? n : 0;
}

static uint32_t read_channel(struct gp_rm *rm, struct nv208f_channel_state *state)
{
	uint32_t status = rm->diag ? NV_OK : open_diag(rm);

	return status ? status
		      : gp_rm_control(rm->fd, rm->client, rm->diag,
				      NV208F_CTRL_CMD_FIFO_GET_CHANNEL_STATE, state, sizeof *state);
}

uint32_t gp_rm_is_enabled(struct gp_rm *rm, uint32_t client, uint32_t channel, bool *enabled)
{
	struct nv208f_channel_state state = {.channel = channel, .client = client};
	char pci[16] = "";
	uint32_t status;

	if (!rm->subdevice) {
		gp_rm_pci(rm, rm->gpu_id, pci);
		status = open_gpu(rm, pci);
		if (status)
			return status;
	}
	for (int i = 0; i < UNSUPPORTED_TRIES; i++) {
		status = read_channel(rm, &state);
		if (status != NV_ERR_NOT_SUPPORTED && status != NV_ERR_INVALID_CLASS)
			break;
	}
	rm->has_read |= !status;
	rm->dead |= status == (GP_RM_ERRNO | ENOTCONN) || status == (GP_RM_ERRNO | ENODEV);
	*enabled = state.enabled;
	if ((status == NV_ERR_NOT_SUPPORTED || status == NV_ERR_INVALID_CLASS) && !rm->has_read)
		return GP_RM_NOT_OFFERED;
	return status;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool gp_rm_clock_offset(const struct gp_rm *rm, int64_t *offset_ns)
{
	struct nv2080_time_correlation c = {.cpu_clock_id = 3, .count = 1};
	int64_t raw_to_monotonic = clock_ns(CLOCK_MONOTONIC) - clock_ns(CLOCK_MONOTONIC_RAW);

	if (!rm->subdevice ||
	    gp_rm_control(rm->fd, rm->client, rm->subdevice,
			  NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO, &c, sizeof c))
		return false;
	*offset_ns = (int64_t)(c.sample[0].cpu_ns - c.sample[0].gpu_ns) + raw_to_monotonic;
	return true;
}
