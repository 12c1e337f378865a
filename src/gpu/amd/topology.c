/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu/amd/kfd_abi.h"

#define PATH_SIZE 320

const char *gp_amd_sysfs(void)
{
	const char *path = secure_getenv("GPREEMPT_KFD_SYSFS");

	return path && *path ? path : "/sys/class/kfd/kfd";
}

/* Inode number of the first pid namespace (PROC_PID_INIT_INO in the kernel). */
#define FIRST_PID_NAMESPACE 0xeffffffcu

bool gp_amd_sees_host_pids(void)
{
	struct stat st;

	return secure_getenv("GPREEMPT_KFD_SYSFS") || stat("/proc/self/ns/pid", &st) ||
	       st.st_ino == FIRST_PID_NAMESPACE;
}

/* Reads the text of a file, cut to `size` - 1. Returns its length, or -errno. */
static ssize_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		n = -errno;
	else
		text[n] = '\0';
	close(fd);
	return n;
}

static int64_t read_number(const char *path)
{
	char text[32], *end;
	ssize_t n = read_text(path, text, sizeof text);
	long long value;

	if (n < 0)
		return n;
	value = strtoll(text, &end, 10);
	return end == text || value < 0 ? -EINVAL : value;
}

/* Folders of nodes, processes and queues have numbers as names. false: the name is no number. */
static bool is_number(const char *name, uint32_t *value)
{
	char *end;
	unsigned long v;

	if (*name < '0' || *name > '9')
		return false;
	v = strtoul(name, &end, 10);
	*value = (uint32_t)v;
	return !*end && v <= INT32_MAX;
}

/* `properties` has lines of "key value". */
static uint32_t property(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, key, length) && line[length] == ' ')
			return (uint32_t)strtoul(line + length + 1, NULL, 10);
	}
	return 0;
}

static int read_node(unsigned number, struct gp_amd_node *node)
{
	char path[PATH_SIZE], text[4096] = "";
	int64_t gpu_id;
	uint32_t per_cu;

	snprintf(path, sizeof path, "%s/topology/nodes/%u/gpu_id", gp_amd_sysfs(), number);
	gpu_id = read_number(path);
	if (gpu_id <= 0)
		return gpu_id < 0 ? (int)gpu_id : -ENODEV; /* a CPU */
	*node = (struct gp_amd_node){.number = number, .gpu_id = (uint32_t)gpu_id};
	snprintf(path, sizeof path, "%s/topology/nodes/%u/name", gp_amd_sysfs(), number);
	if (read_text(path, node->name, sizeof node->name) > 0)
		node->name[strcspn(node->name, "\n")] = '\0';
	snprintf(path, sizeof path, "%s/topology/nodes/%u/properties", gp_amd_sysfs(), number);
	if (read_text(path, text, sizeof text) < 0)
		return -EPERM; /* refused by the device cgroup */
	node->gfx = property(text, "gfx_target_version");
	node->capability = property(text, "capability");
	node->xccs = property(text, "num_xcc");
	if (!node->xccs)
		node->xccs = 1;
	per_cu = property(text, "simd_per_cu");
	node->compute_units = per_cu ? property(text, "simd_count") / per_cu : 0;
	node->fw_version = property(text, "fw_version");
	return 0;
}

int gp_amd_nodes(struct gp_amd_node *node, unsigned max)
{
	char path[PATH_SIZE];
	unsigned n = 0;
	bool there = false, one_at_a_time = false;

	/* Nodes are numbered without gaps. A gap is a node that is being removed. */
	for (unsigned i = 0; i < GP_AMD_NODES_MAX * 2; i++) {
		struct gp_amd_node found;
		int r = read_node(i, &found);

		if (r == -ENOENT)
			break;
		there = true;
		if (r)
			continue;
		one_at_a_time |= !gp_amd_chip_debugs_many(&found);
		if (n < max)
			node[n] = found;
		n++;
	}
	for (unsigned i = 0; i < n && i < max; i++)
		node[i].one_at_a_time = one_at_a_time;
	snprintf(path, sizeof path, "%s/topology/nodes", gp_amd_sysfs());
	return there || !access(path, R_OK) ? (int)n : -errno;
}

bool gp_amd_has_mes(const struct gp_amd_node *node)
{
	return node->gfx >= 110000;
}

/* Chips with debug registers for each VMID: in the driver's numbers 9.4.2 (gfx90a), 9.4.3 and 9.4.4
 * (gfx94x), and 11.0 and later. */
bool gp_amd_chip_debugs_many(const struct gp_amd_node *node)
{
	return node->gfx == 90010 || (node->gfx >= 90400 && node->gfx < 100000) ||
	       node->gfx >= 110000;
}

bool gp_amd_debugs_many(const struct gp_amd_node *node)
{
	return !node->one_at_a_time;
}

bool gp_amd_can_suspend(const struct gp_amd_node *node)
{
	return node->gfx >= 90000 && (node->capability & KFD_CAP_DEBUG) == KFD_CAP_DEBUG;
}

bool gp_amd_has_occupancy(const struct gp_amd_node *node)
{
	return node->gfx < 100000;
}

const char *gp_amd_gfx_name(const struct gp_amd_node *node, char *out, size_t size)
{
	/* The stepping is a hexadecimal digit in names. */
	snprintf(out, size, "gfx%u%u%x", node->gfx / 10000, node->gfx / 100 % 100, node->gfx % 100);
	return out;
}

int gp_amd_each_process(int (*each)(void *arg, pid_t pid), void *arg)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	uint32_t pid;
	int r = 0;
	DIR *dir;

	snprintf(path, sizeof path, "%s/proc", gp_amd_sysfs());
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (!r && (entry = readdir(dir)))
		if (is_number(entry->d_name, &pid))
			r = each(arg, (pid_t)pid);
	closedir(dir);
	return r;
}

static int read_queue(pid_t pid, uint32_t id, struct gp_amd_sysfs_queue *queue)
{
	static const char *const files[] = {"gpuid", "size", "type"};
	int64_t value[3];

	for (unsigned i = 0; i < 3; i++) {
		char path[PATH_SIZE];

		snprintf(path, sizeof path, "%s/proc/%d/queues/%u/%s", gp_amd_sysfs(), pid, id,
			 files[i]);
		value[i] = read_number(path);
		if (value[i] < 0)
			return (int)value[i];
	}
	*queue = (struct gp_amd_sysfs_queue){.id = id,
					     .gpu_id = (uint32_t)value[0],
					     .size = (uint64_t)value[1],
					     .type = (uint32_t)value[2]};
	return 0;
}

int gp_amd_sysfs_queues(pid_t pid, struct gp_amd_sysfs_queue *queue, unsigned max)
{
	char path[PATH_SIZE];
	struct dirent *entry;
	unsigned n = 0;
	uint32_t id;
	DIR *dir;

	snprintf(path, sizeof path, "%s/proc/%d/queues", gp_amd_sysfs(), pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(dir))) {
		struct gp_amd_sysfs_queue q;

		if (!is_number(entry->d_name, &id) || read_queue(pid, id, &q))
			continue; /* destroyed meanwhile */
		q.serial = entry->d_ino;
		if (n < max)
			queue[n] = q;
		n++;
	}
	closedir(dir);
	return (int)n;
}

bool gp_amd_has_no_queues(pid_t pid)
{
	int n = gp_amd_sysfs_queues(pid, NULL, 0);

	return !n || n == -ESRCH;
}

uint64_t gp_amd_queue_serial(pid_t pid, uint32_t id)
{
	char path[PATH_SIZE];
	struct stat st;

	snprintf(path, sizeof path, "%s/proc/%d/queues/%u", gp_amd_sysfs(), pid, id);
	return stat(path, &st) ? 0 : st.st_ino;
}

int gp_amd_occupancy(pid_t pid, uint32_t gpu_id)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s/proc/%d/stats_%u/cu_occupancy", gp_amd_sysfs(), pid,
		 gpu_id);
	return (int)read_number(path);
}

int64_t gp_amd_evicted_ms(pid_t pid, uint32_t gpu_id)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof path, "%s/proc/%d/stats_%u/evicted_ms", gp_amd_sysfs(), pid, gpu_id);
	return read_number(path);
}

uint64_t gp_amd_memory(pid_t pid, uint32_t gpu_id)
{
	char path[PATH_SIZE];
	int64_t bytes;

	snprintf(path, sizeof path, "%s/proc/%d/vram_%u", gp_amd_sysfs(), pid, gpu_id);
	bytes = read_number(path);
	return bytes > 0 ? (uint64_t)bytes : 0;
}
