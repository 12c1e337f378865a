/* SPDX-License-Identifier: Apache-2.0 */
/* gpreempt simload: one process that uses a simulated GPU. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cli/verb/simload.h"
#include "cli/lib/stop.h"
#include "sim/model/sim_gpu.h"

struct program {
	const struct gp_simload_work *work;
	struct gp_simload_result *result;
	struct gp_rng rng;
	int fd;
	uint64_t right; /* the expected result of each request */
	uint64_t begin_ns, end_ns;
	uint64_t submitted;  /* requests */
	uint64_t arrival_ns; /* of the next request */
	uint64_t last_done_ns;
	uint64_t since_ns[GP_SIMGPU_QUEUED]; /* start of the response time of each queued request */
};

static uint64_t draw_interval(struct program *p)
{
	return p->work->when == GP_SIMLOAD_POISSON ? gp_rng_exponential(&p->rng, p->work->every_ns)
						   : p->work->every_ns;
}

static uint64_t on_the_way(const struct program *p)
{
	return p->submitted - p->result->requests;
}

static bool is_complete(const struct program *p)
{
	return p->work->requests && p->submitted == p->work->requests;
}

/* The time of the next request; GP_NEVER: after a request is done. */
static uint64_t next_ns(const struct program *p)
{
	uint64_t most = p->work->when == GP_SIMLOAD_CLOSED ? p->work->ahead : GP_SIMGPU_QUEUED;

	if (is_complete(p) || on_the_way(p) >= most)
		return GP_NEVER;
	return p->arrival_ns;
}

/* A response time begins at the scheduled arrival, also if the request was sent later. In a closed
 * loop a request arrives when it is sent, or when the previous request is done. */
static int submit(struct program *p, uint64_t now_ns)
{
	const struct gp_simload_work *w = p->work;
	int r = gp_simgpu_submit(p->fd, p->submitted, w->kernels, w->kernel_ns, w->gap_ns);

	if (r)
		return r;
	p->since_ns[p->submitted % GP_SIMGPU_QUEUED] =
		w->when == GP_SIMLOAD_CLOSED ? now_ns : p->arrival_ns;
	p->submitted++;
	if (w->when == GP_SIMLOAD_CLOSED)
		p->arrival_ns = now_ns;
	else
		p->arrival_ns += draw_interval(p);
	return 0;
}

static int submit_what_is_due(struct program *p)
{
	uint64_t now_ns = gp_monotonic_ns();
	int r = 0;

	while (!r && next_ns(p) <= now_ns && now_ns < p->end_ns)
		r = submit(p, now_ns);
	return r == -EAGAIN ? 0 : r; /* the socket is full; the end of a request makes room */
}

static int take_done(struct program *p)
{
	struct gp_simload_result *result = p->result;
	struct gp_simgpu_done done;
	uint64_t now_ns, since_ns;
	int r = gp_simgpu_take(p->fd, &done);

	if (r)
		return r;
	if (done.status)
		return gp_fail(&result->err, done.status, "the simulated GPU refused a request: %s",
			       gp_error_name(done.status));
	now_ns = gp_monotonic_ns();
	since_ns = p->since_ns[result->requests % GP_SIMGPU_QUEUED];
	if (p->work->when == GP_SIMLOAD_CLOSED && since_ns < p->last_done_ns)
		since_ns = p->last_done_ns;
	p->last_done_ns = now_ns;
	gp_hist_add(&result->response_ns, now_ns > since_ns ? now_ns - since_ns : 0);
	gp_hist_add(&result->device_ns, done.done_ns - done.submitted_ns);
	/* Requests end in order. Another tag than the next means a lost or doubled request. */
	result->wrong += done.value != p->right || done.tag != result->requests;
	result->checksum = (result->checksum ^ done.value) * 0x9e3779b97f4a7c15ull + done.tag;
	result->requests++;
	return 0;
}

static int take_all_done(struct program *p)
{
	int r;

	while (!(r = take_done(p)))
		;
	return r == -EAGAIN ? 0 : r;
}

static bool is_over(const struct program *p)
{
	return gp_stop_asked() || gp_monotonic_ns() >= p->end_ns ||
	       (is_complete(p) && !on_the_way(p));
}

static void wait_for_events(const struct program *p)
{
	struct pollfd fds[2] = {{.fd = p->fd, .events = POLLIN},
				{.fd = gp_stop_fd(), .events = POLLIN}};
	uint64_t now_ns = gp_monotonic_ns(), until_ns = next_ns(p);
	struct timespec timeout;

	if (p->end_ns < until_ns)
		until_ns = p->end_ns;
	timeout = gp_timespec(until_ns > now_ns ? until_ns - now_ns : 0);
	ppoll(fds, 2, until_ns == GP_NEVER ? NULL : &timeout, NULL);
}

static int work_on(struct program *p)
{
	int r = 0;

	p->begin_ns = gp_monotonic_ns();
	p->end_ns = gp_time_add(p->begin_ns, p->work->for_ns);
	p->arrival_ns = p->begin_ns;
	if (p->work->when != GP_SIMLOAD_CLOSED) /* a random phase: programs that start together must
						   not stay in step */
		p->arrival_ns += gp_rng_below(&p->rng, p->work->every_ns);
	while (!r && !is_over(p)) {
		r = submit_what_is_due(p);
		if (!r) {
			wait_for_events(p);
			r = take_all_done(p);
		}
	}
	p->result->took_ns = gp_monotonic_ns() - p->begin_ns;
	p->result->left = on_the_way(p);
	return r == -EIO ? gp_fail(&p->result->err, r, "the simulated GPU is gone") : r;
}

int gp_simload_run(const struct gp_simload_work *work, uint64_t stream,
		   struct gp_simload_result *result, void (*ready)(void))
{
	struct program p = {.work = work, .result = result};
	struct gp_simgpu_hello hello = work->program;
	char path[GP_SIMGPU_PATH_SIZE];
	int r;

	gp_hist_init(&result->response_ns);
	gp_hist_init(&result->device_ns);
	gp_rng_init(&p.rng, work->seed, stream);
	p.right = gp_sim_right_value(work->kernels, work->kernel_ns);
	p.fd = gp_simgpu_join(gp_simgpu_path(path, sizeof path), &hello, &result->err);
	if (p.fd < 0)
		return p.fd;
	result->is_ready = true;
	if (ready)
		ready();
	r = work_on(&p);
	close(p.fd);
	return r;
}
