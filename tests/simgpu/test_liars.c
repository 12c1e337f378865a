/* SPDX-License-Identifier: Apache-2.0 */
/* The back end and a server that lies: an error, and never more than that. */
#include "simgpu_world.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/un.h>

#include "base/rng.h"

enum lie {
	LIE_NONE,
	LIE_SHORT,      /* a welcome that is cut */
	LIE_KIND,       /* no welcome at all */
	LIE_SILENT,     /* ends without a word */
	LIE_NO_FILES,   /* nothing to map */
	LIE_NOT_SEALED, /* a state that can become smaller */
	LIE_SMALL,      /* one that is too small */
	LIE_MAGIC,      /* no state */
	LIE_CONTROLLER, /* a place that there is not */
	LIE_DEVICES,    /* too many to be true */
	LIES,
};

/* What every liar shows, if it is not -1: the test can change it. */
static int shown_fd = -1;

/* A state in which nothing is right but its head, if `seed` is not 0. */
static int make_state(enum lie lie, uint64_t seed)
{
	int fd = shown_fd >= 0 ? dup(shown_fd)
			       : memfd_create("liar", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	size_t size = lie == LIE_SMALL ? 4096 : sizeof(struct gp_simgpu_state);
	struct gp_simgpu_state *s;
	struct gp_rng rng;

	if (shown_fd >= 0)
		return fd;
	assert_true(fd >= 0 && !ftruncate(fd, (off_t)size));
	if (lie != LIE_SMALL) {
		s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		assert_true(s != MAP_FAILED);
		gp_rng_init(&rng, seed, 0);
		for (size_t i = 0; seed && i < size / 8; i++)
			((uint64_t *)s)[i] = gp_rng_next(&rng);
		s->magic = lie == LIE_MAGIC ? 1 : GP_SIMGPU_MAGIC;
		s->version = GP_SIMGPU_VERSION;
		s->size = sizeof *s;
		munmap(s, size);
	}
	if (lie != LIE_NOT_SEALED)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	return fd;
}

static void answer(int fd, enum lie lie, uint64_t seed)
{
	struct gp_simgpu_welcome w = {.kind = lie == LIE_KIND ? GP_SIMGPU_DONE : GP_SIMGPU_WELCOME,
				      .version = GP_SIMGPU_VERSION,
				      .devices = lie == LIE_DEVICES ? 1000000 : 1,
				      .controller = lie == LIE_CONTROLLER ? 1u << 31 : 0};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct iovec data = {.iov_base = &w, .iov_len = lie == LIE_SHORT ? sizeof w / 2 : sizeof w};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};
	int files[2] = {make_state(lie, seed), eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

	if (lie != LIE_NO_FILES) {
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof files),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), files, sizeof files);
	}
	if (lie != LIE_SILENT)
		sendmsg(fd, &m, MSG_NOSIGNAL);
	close(files[0]);
	close(files[1]);
}

/* A process that answers every client in this way, and then reads what it sends. */
static void start_liar(struct world *w, enum lie lie, uint64_t seed)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char heard[64];

	snprintf(address.sun_path, sizeof address.sun_path, "%s", w->path);
	unlink(w->path);
	assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(s, 16), 0);
	w->server = fork();
	if (w->server) {
		close(s);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(s, NULL, NULL);

		if (recv(fd, heard, sizeof heard, 0) > 0)
			answer(fd, lie, seed);
		if (lie == LIE_SILENT)
			close(fd);
	}
}

/* A world without its server. */
static int set_up(void **state)
{
	int r = world_set_up(state);

	if (!r)
		world_kill(&((struct world *)*state)->server, SIGTERM);
	return r;
}

#define LIAR_TEST(f) TEST_IN(struct world, f, set_up, world_tear_down)

LIAR_TEST(what_is_not_a_gpu_is_not_opened)
{
	for (unsigned lie = LIE_NONE; lie < LIES; lie++) {
		struct gp_gpu *gpu = NULL;
		int r;

		start_liar(w, (enum lie)lie, 0);
		r = gp_simgpu_ops.open(0, 0, &gpu);
		if (lie == LIE_NONE) {
			assert_int_equal(r, 0); /* otherwise this tests nothing */
			world_close(gpu);
		} else if (lie == LIE_SILENT) {
			assert_true(r < 0);
		} else {
			assert_int_equal(r, -EPROTO);
		}
		world_kill(&w->server, SIGKILL);
	}
}

static void check_observation(const struct gp_gpu *gpu, const struct gp_observation *o,
			      uint64_t at_ns)
{
	assert_true(o->failed <= 0 && o->failed >= -4095);
	assert_true(o->active_since_ns <= at_ns);
	assert_true(o->run_at_ns <= at_ns);
	assert_true(o->on_at_ns <= at_ns && o->off_at_ns <= at_ns);
	assert_false(o->known & (GP_KNOWN_WAITED | GP_KNOWN_REQUEST));
	assert_true(!(o->known & GP_KNOWN_RUN) || o->run_source == GP_RUN_MEASURED);
	(void)gpu;
}

static void use_it(struct gp_gpu *gpu)
{
	static struct gp_seen seen[GP_SIMGPU_CONTEXTS];
	int n = gp_gpu_scan(gpu, now(), seen, GP_SIMGPU_CONTEXTS);

	assert_in_range(n, 0, GP_SIMGPU_CONTEXTS);
	assert_true(memchr(gpu->info.name, 0, sizeof gpu->info.name));
	assert_true(gpu->info.max_held <= GP_SIMGPU_CONTEXTS);
	for (int i = 0; i < n; i++) {
		struct gp_observation o = {0}, again;
		struct gp_action a = {0};
		struct gp_queue queue;
		struct gp_undo undo;
		uint64_t at_ns = now();

		assert_true(seen[i].pid > 0);
		assert_non_null(memchr(seen[i].name, 0, sizeof seen[i].name));
		if (gp_gpu_attach(gpu, seen[i].key, &o.handle))
			continue;
		a.handle = o.handle;
		again = o;
		assert_int_equal(gp_gpu_observe(gpu, at_ns, &o, 1), 0);
		check_observation(gpu, &o, at_ns);
		assert_int_equal(gp_gpu_observe(gpu, at_ns + 1, &again, 1), 0);
		assert_true(again.run_ns >= o.run_ns); /* never falls */
		assert_int_equal(gp_gpu_hold(gpu, at_ns, &a, 1), 0);
		gp_gpu_queues(gpu, seen[i].key, false, &queue, 1, NULL);
		gp_gpu_undo_record(gpu, o.handle, &undo);
		gp_gpu_detach(gpu, o.handle);
	}
}

LIAR_TEST(what_it_says_is_made_harmless)
{
	for (uint64_t seed = 1; seed < 20; seed++) {
		struct gp_gpu *gpu = NULL;

		start_liar(w, LIE_NONE, seed);
		assert_int_equal(gp_simgpu_ops.open(0, 0, &gpu), 0);
		use_it(gpu);
		world_close(gpu);
		world_kill(&w->server, SIGKILL);
	}
}

LIAR_TEST(a_run_time_that_falls_is_not_believed)
{
	struct gp_simgpu_state *s;
	struct gp_gpu *gpu;
	uint32_t handle = UINT32_MAX;
	int fd = make_state(LIE_NONE, 0);

	shown_fd = fd;
	s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(s != MAP_FAILED);
	s->used = 1;
	for (unsigned i = 0; i < 2; i++)
		s->place[0].copy[i] = (struct gp_simgpu_context){.key = 5,
								 .pid = getpid(),
								 .known = GP_KNOWN_RUN,
								 .run_source = GP_RUN_MEASURED,
								 .run_ns = 100};
	start_liar(w, LIE_NONE, 0);
	assert_int_equal(gp_simgpu_ops.open(0, 0, &gpu), 0);
	assert_int_equal(gp_gpu_attach(gpu, 5, &handle), 0);
	assert_int_equal(world_look(gpu, handle).run_ns, 0);
	s->place[0].copy[0].run_ns = 1000;
	assert_int_equal(world_look(gpu, handle).run_ns, 900);
	s->place[0].copy[0].run_ns = 500;
	assert_int_equal(world_look(gpu, handle).run_ns, 900);
	s->place[0].copy[0].run_ns = 1;
	assert_int_equal(world_look(gpu, handle).run_ns, 900);
	world_close(gpu);
	munmap(s, sizeof *s);
	close(fd);
	shown_fd = -1;
}

/* The server was not woken for a long time: what it said does not go on for ever. */
TEST(a_run_goes_on_as_long_as_it_was_said_to)
{
	struct gp_simgpu_context c = {.pid = 4711,
				      .known = GP_KNOWN_RUN | GP_KNOWN_RUNNING,
				      .running = true,
				      .run_ns = 1000,
				      .run_at_ns = 5000,
				      .runs_until_ns = 7000};
	uint64_t at_ns;

	assert_int_equal(gp_simclient_run_ns(&c, 6000, &at_ns), 2000);
	assert_int_equal(at_ns, 6000);
	assert_int_equal(gp_simclient_run_ns(&c, 1000000, &at_ns), 3000);
	assert_int_equal(at_ns, 7000);
	assert_int_equal(gp_simclient_run_ns(&c, 4000, &at_ns),
			 1000); /* published after `now` was read */
	c.runs_until_ns = 0;
	assert_int_equal(gp_simclient_run_ns(&c, 6000, &at_ns), 1000);
	c.running = false;
	assert_int_equal(gp_simclient_run_ns(&c, 6000, &at_ns), 1000);
	assert_int_equal(at_ns, 6000);
	c.known = GP_KNOWN_RUN; /* a sample, of that time */
	assert_int_equal(gp_simclient_run_ns(&c, 6000, &at_ns), 1000);
	assert_int_equal(at_ns, 5000);
}
