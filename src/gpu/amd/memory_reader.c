/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/amd/memory_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process.h"

#define CAPACITY 64u  /* readings of the first reader */
#define OPEN_MAX 256u /* files that a reader keeps open */

/* The first reading must begin in this multiple of the time limit for one. */
#define BEGIN_PATIENCE 10u

/* What a reader shares with this process. */
struct board {
	_Atomic uint64_t since_ns; /* begin of the current reading; 0 = the first has not begun */
	_Atomic uint32_t at;       /* its index. Written after since_ns and read before it, so that
				    * no reading is blamed for the time of the one before */
	struct gp_amd_reading reading[];
};

/* In the helper process. */

/* /proc/PID/mem of the process that was last read in each place. A file that was opened stays with
 * the memory of its program, also after execve. */
static struct memory {
	uint64_t key;
	int fd;
} memory[OPEN_MAX];

static void forget_memory(struct memory *m)
{
	if (m->key && m->fd >= 0)
		close(m->fd);
	*m = (struct memory){0};
}

static struct memory *memory_of(const struct gp_amd_reading *g)
{
	struct memory *m = &memory[(g->key ^ g->key >> 32) / 64 % OPEN_MAX];
	char path[32];

	if (m->key == g->key)
		return m;
	forget_memory(m);
	snprintf(path, sizeof path, "/proc/%d/mem", g->pid);
	*m = (struct memory){.key = g->key, .fd = open(path, O_RDONLY | O_CLOEXEC)};
	return m;
}

static bool read_pointer(int fd, uint64_t address, uint64_t *value)
{
	return pread(fd, value, sizeof *value, (off_t)address) == sizeof *value;
}

/* Number of packets that were not taken, and the two pointers. */
static bool read_queue(int fd, const struct gp_amd_pointers *p, uint64_t *pending,
		       uint64_t *written, uint64_t *taken)
{
	if (!read_pointer(fd, p->read_address, taken) ||
	    !read_pointer(fd, p->write_address, written))
		return false;
	*pending = (*written - *taken) & p->mask;
	return true;
}

static void read_queues(struct gp_amd_reading *g)
{
	struct memory *m = memory_of(g);

	g->known = g->n > 0;
	g->pending = g->written = g->taken = 0;
	for (unsigned i = 0; i < g->n; i++) {
		uint64_t pending = 0, written = 0, taken = 0;
		bool known = read_queue(m->fd, &g->pointer[i], &pending, &written, &taken);

		g->known &= known;
		g->pointer[i].taken = taken;
		g->pointer[i].pending = known ? pending : UINT64_MAX;
		g->pending += pending;
		g->written += written;
		g->taken += taken;
	}
	if (!g->known)
		forget_memory(m);
}

/* A waiting packet is work, and so is a packet that was added and taken since the last reading. The
 * pointers do not show whether a packet that was taken still runs. */
static enum gp_amd_work find_work(struct gp_amd_reading *g)
{
	g->occupied =
		g->wants_occupancy && g->has_occupancy ? gp_amd_occupancy(g->pid, g->gpu_id) : -1;
	if (g->pending || (g->knows_written && g->written != g->written_before))
		return GP_AMD_WORK_SEEN;
	if (g->was_idle)
		return GP_AMD_WORK_NONE;
	if (g->occupied < 0 && g->has_occupancy)
		g->occupied = gp_amd_occupancy(g->pid, g->gpu_id);
	return g->occupied < 0 ? GP_AMD_WORK_MAYBE
	       : g->occupied   ? GP_AMD_WORK_SEEN
			       : GP_AMD_WORK_NONE;
}

/* Packets that wait beside idle compute units, before and after the occupancy was read. */
static bool is_stalled(const struct gp_amd_reading *g)
{
	struct gp_amd_reading again = *g;

	if (!g->pending || g->occupied)
		return false;
	read_queues(&again);
	return again.known && again.pending && again.taken == g->taken;
}

static void read_task(struct gp_amd_reading *g)
{
	read_queues(g);
	g->occupied = -1;
	if (g->known)
		g->work = find_work(g);
	g->stalled = g->known && is_stalled(g);
}

static void serve(int fd, void *shared)
{
	struct board *board = shared;
	uint32_t n;

	while (recv(fd, &n, sizeof n, 0) == (ssize_t)sizeof n) {
		for (uint32_t i = 0; i < n; i++) {
			atomic_store(&board->since_ns, gp_monotonic_ns());
			atomic_store(&board->at, i);
			read_task(&board->reading[i]);
		}
		if (send(fd, &n, sizeof n, MSG_NOSIGNAL) != (ssize_t)sizeof n)
			return;
	}
}

/* In this process. */

void gp_amd_readers_init(struct gp_amd_readers *readers)
{
	*readers = (struct gp_amd_readers){0};
	gp_accounts_init(&readers->accounts, GP_SUBUID_PATH);
}

static void free_ended(struct gp_amd_readers *readers)
{
	for (unsigned i = readers->nout; i-- > 0;)
		if (gp_helper_reap(&readers->out[i].helper, false))
			readers->out[i] = readers->out[--readers->nout];
}

bool gp_amd_readers_refuse(struct gp_amd_readers *readers, uid_t uid)
{
	unsigned n = 0;
	uid_t account;

	if (!readers->nout)
		return false;
	account = gp_account_of(&readers->accounts, uid);
	free_ended(readers);
	for (unsigned i = 0; i < readers->nout; i++)
		n += readers->out[i].account == account;
	return n >= GP_AMD_READERS_PER_ACCOUNT;
}

/* Ends a reader that is idle or has ended. */
static void end_reader(struct gp_amd_readers *readers)
{
	if (!readers->capacity)
		return;
	gp_helper_kill(&readers->reader);
	gp_helper_reap(&readers->reader, true);
	readers->capacity = 0;
}

struct gp_amd_reading *gp_amd_readers_room(struct gp_amd_readers *readers, unsigned n)
{
	unsigned capacity = CAPACITY;

	free_ended(readers);
	while (capacity < n)
		capacity *= 2;
	if (n > readers->capacity || gp_pidfd_ended(readers->reader.pidfd))
		end_reader(readers);
	if (!readers->capacity) {
		if (readers->nout == GP_AMD_READERS_MAX ||
		    gp_helper_start(&readers->reader, GP_HELPER_HIDDEN,
				    sizeof(struct board) + capacity * sizeof(struct gp_amd_reading),
				    serve))
			return NULL;
		readers->capacity = capacity;
	}
	return ((struct board *)readers->reader.shared)->reading;
}

/* Waits for the answer. */
static int wait_for(const struct gp_amd_readers *readers, const struct board *board)
{
	uint64_t patience_ns = readers->patience_ns ? readers->patience_ns : GP_AMD_PATIENCE_NS;
	uint64_t asked_ns = gp_monotonic_ns();
	struct pollfd p = {.fd = readers->reader.fd, .events = POLLIN};
	uint32_t n;

	while (!p.revents) {
		struct timespec wait = gp_timespec(patience_ns / 4);
		uint32_t at = atomic_load(&board->at);
		uint64_t now_ns = gp_monotonic_ns(), since_ns = atomic_load(&board->since_ns);

		if (since_ns && now_ns >= since_ns + patience_ns)
			return (int)at;
		if (!since_ns && now_ns >= asked_ns + BEGIN_PATIENCE * patience_ns)
			return GP_AMD_READ_NONE;
		if (ppoll(&p, 1, &wait, NULL) < 0)
			p.revents = 0;
	}
	return recv(p.fd, &n, sizeof n, 0) == (ssize_t)sizeof n ? GP_AMD_READ_ALL
								: GP_AMD_READ_NONE;
}

/* Kills the reader, which may stay in the kernel. */
static void abandon(struct gp_amd_readers *readers, uid_t account)
{
	readers->out[readers->nout].account = account;
	gp_helper_kill(&readers->reader);
	readers->out[readers->nout++].helper = readers->reader;
	readers->capacity = 0;
}

int gp_amd_readers_run(struct gp_amd_readers *readers, unsigned n)
{
	struct board *board = readers->reader.shared;
	int r = GP_AMD_READ_NONE;

	atomic_store(&board->at, 0);
	atomic_store(&board->since_ns, 0);
	if (send(readers->reader.fd, &n, sizeof n, MSG_NOSIGNAL) == (ssize_t)sizeof n)
		r = wait_for(readers, board);
	if (r == GP_AMD_READ_NONE)
		abandon(readers, (uid_t)-1);
	else if (r >= 0)
		abandon(readers, gp_account_of(&readers->accounts, board->reading[r].uid));
	return r;
}

/* A reader that hangs ends by itself later. */
void gp_amd_readers_end(struct gp_amd_readers *readers)
{
	end_reader(readers);
	free_ended(readers);
	for (unsigned i = 0; i < readers->nout; i++)
		close(readers->out[i].helper.pidfd);
	gp_accounts_free(&readers->accounts);
	*readers = (struct gp_amd_readers){0};
}
