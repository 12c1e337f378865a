/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/server/sim_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define EVENTS 64 /* per pass of the loop */

/* Setup. */

static int watch_fd(struct server *s, int fd, void *what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Removes a socket that was left behind: no server answers on it. */
static int clear_path(const struct sockaddr_un *address, struct gp_error *err)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), r;
	struct stat st;

	if (fd < 0)
		return gp_fail(err, -errno, "cannot create a socket: %s", gp_error_name(-errno));
	r = connect(fd, (const struct sockaddr *)address, sizeof *address) ? errno : 0;
	close(fd);
	if (!r)
		return gp_fail(
			err, -EBUSY,
			"a simulated GPU is already running at %s; stop it or use another --socket",
			address->sun_path);
	if (r == ENOENT)
		return 0;
	if (lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return gp_fail(err, -EEXIST,
			       "%s exists and is not a socket; remove it or use another --socket",
			       address->sun_path);
	if (unlink(address->sun_path))
		return gp_fail(err, -errno, "cannot remove %s: %s", address->sun_path,
			       gp_error_name(-errno));
	return 0;
}

/* All users may connect. Their credentials decide what they may do. */
static int listen_at(struct server *s, const char *path, struct gp_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int r;

	if (!*path || strlen(path) >= sizeof address.sun_path)
		return gp_fail(err, -ENAMETOOLONG,
			       "'%s' is empty or too long for the path of a socket", path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	r = clear_path(&address, err);
	if (r)
		return r;
	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0 || bind(s->listen_fd, (struct sockaddr *)&address, sizeof address))
		return gp_fail(err, -errno, "cannot listen at %s: %s", path, gp_error_name(-errno));
	s->config.path = path; /* this process owns the path from here on */
	if (chmod(path, 0666) || listen(s->listen_fd, SOMAXCONN))
		return gp_fail(err, -errno, "cannot listen at %s: %s", path, gp_error_name(-errno));
	return watch_fd(s, s->listen_fd, &s->listen_fd);
}

static int make_fds(struct server *s, struct gp_error *err)
{
	sigset_t ends;
	int r;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	s->signal_fd = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	s->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (s->epoll_fd < 0 || s->timer_fd < 0 || s->signal_fd < 0 || s->spare_fd < 0)
		return gp_fail(err, -errno, "cannot create event descriptors: %s",
			       gp_error_name(-errno));
	r = watch_fd(s, s->timer_fd, &s->timer_fd);
	return r ? r : watch_fd(s, s->signal_fd, &s->signal_fd);
}

/* One entry for each possible program and controller, and some for other clients. */
static int make_clients(struct server *s)
{
	struct rlimit files;

	s->nclients = s->ndevices * (GP_SIMGPU_CONTEXTS + GP_SIMGPU_CONTROLLERS) +
		      GP_SIMGPU_CONTROLLERS * 2;
	s->client = calloc(s->nclients, sizeof *s->client);
	if (!s->client)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->nclients; i++)
		s->client[i].fd = -1;
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return 0;
}

static int make_devices(struct server *s, struct gp_error *err)
{
	s->device = calloc(s->config.devices, sizeof *s->device);
	if (!s->device)
		return gp_fail(err, -ENOMEM, "out of memory");
	while (s->ndevices < s->config.devices) {
		uint32_t i = s->ndevices++;
		int r = gp_sim_device_init(&s->device[i], s, i, err);

		if (r)
			return r;
	}
	return 0;
}

int gp_sim_server_new(const struct gp_sim_server_config *config, struct server **server,
		      struct gp_error *err)
{
	struct server *s = calloc(1, sizeof *s);
	int r;

	if (!s)
		return gp_fail(err, -ENOMEM, "out of memory");
	s->config = *config;
	s->config.path = NULL;
	s->uid = geteuid();
	s->began_ns = gp_monotonic_ns();
	s->next_key =
		s->began_ns; /* after a restart keys are different: they begin at a later time */
	s->epoll_fd = s->listen_fd = s->timer_fd = s->signal_fd = s->spare_fd = -1;
	r = make_devices(s, err);
	if (!r && make_clients(s))
		r = gp_fail(err, -ENOMEM, "out of memory");
	if (!r)
		r = make_fds(s, err);
	if (!r && config->path)
		r = listen_at(s, config->path, err);
	if (r)
		gp_sim_server_free(s);
	else
		*server = s;
	return r;
}

void gp_sim_server_free(struct server *s)
{
	const int fd[] = {s->epoll_fd, s->listen_fd, s->timer_fd, s->signal_fd, s->spare_fd};

	for (uint32_t i = 0; s->client && i < s->nclients; i++)
		if (s->client[i].fd >= 0)
			gp_sim_client_drop(&s->client[i]);
	for (unsigned i = 0; i < sizeof fd / sizeof *fd; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (s->config.path)
		unlink(s->config.path);
	for (uint32_t i = 0; i < s->ndevices; i++)
		gp_sim_device_free(&s->device[i]);
	free(s->device);
	free(s->client);
	free(s);
}

/* The loop. */

static void set_timer(struct server *s, uint64_t next_ns)
{
	struct itimerspec when = {0};

	if (next_ns != GP_NEVER)
		when.it_value = gp_timespec(next_ns);
	timerfd_settime(s->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* Sending a result can show that another client is gone, so this is repeated. */
static void drop_clients(struct server *s)
{
	while (s->any_gone) {
		s->any_gone = false;
		for (uint32_t i = 0; i < s->nclients; i++)
			if (s->client[i].gone)
				gp_sim_client_drop(&s->client[i]);
	}
}

void gp_sim_server_settle(struct server *s)
{
	uint64_t now_ns = gp_monotonic_ns(), next_ns = GP_NEVER;

	if (s->any_gone)
		drop_clients(s);
	for (uint32_t i = 0; i < s->ndevices; i++) {
		struct device *d = &s->device[i];

		if (d->touched || gp_sim_device_next_ns(d) <= now_ns) {
			gp_sim_device_advance(d);
			gp_sim_device_publish(d);
		}
		if (gp_sim_device_next_ns(d) < next_ns)
			next_ns = gp_sim_device_next_ns(d);
	}
	set_timer(s, next_ns);
}

/* Returns false if the server must end. */
static bool take_event(struct server *s, void *what)
{
	uint64_t ignored;

	if (what == &s->signal_fd)
		return false;
	if (what == &s->listen_fd)
		gp_sim_clients_accept(s);
	else if (what != &s->timer_fd)
		gp_sim_client_receive(s, what); /* ignores a closed client */
	else if (read(s->timer_fd, &ignored, sizeof ignored) < 0)
		return true; /* the timer was set again in the meantime */
	return true;
}

int gp_sim_server_run(struct server *s)
{
	struct epoll_event event[EVENTS];

	for (;;) {
		int n = epoll_wait(s->epoll_fd, event, EVENTS, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			if (!take_event(s, event[i].data.ptr))
				return 0;
		gp_sim_server_settle(s);
	}
}

/* The statistics. */

static unsigned long long plain(uint64_t n)
{
	return n;
}

static void json_device(struct device *d)
{
	const struct gp_sim_totals *t = gp_sim_totals(d->sim);

	printf("%s{\"device\":%u,\"name\":\"%s\",\"busy_ns\":%llu,\"switch_ns\":%llu,"
	       "\"switches\":%llu,\"preemptions\":%llu,\"requests\":%llu,\"programs\":%llu,"
	       "\"most_programs\":%llu,\"holds\":%llu,\"releases\":%llu,\"slices\":%llu,"
	       "\"model_events\":%llu,\"slipped_ns\":%llu}",
	       d->number ? "," : "", d->number, d->state->info.name, plain(t->busy_ns),
	       plain(t->switch_ns), plain(t->switches), plain(t->preemptions),
	       plain(d->counts.requests), plain(d->counts.programs), plain(d->counts.most),
	       plain(d->counts.holds), plain(d->counts.releases), plain(d->counts.slices),
	       plain(t->events), plain(d->slipped_ns));
}

static void print_device(struct device *d, uint64_t for_ns)
{
	const struct gp_sim_totals *t = gp_sim_totals(d->sim);
	double percent = 100.0 / (double)(for_ns ? for_ns : 1);

	printf("%s: busy %.1f %%, switching %.1f %%, %llu requests of %llu programs, "
	       "%llu switches, %llu holds, %llu releases, %llu slices set\n",
	       d->state->info.name, (double)t->busy_ns * percent, (double)t->switch_ns * percent,
	       plain(d->counts.requests), plain(d->counts.programs), plain(t->switches),
	       plain(d->counts.holds), plain(d->counts.releases), plain(d->counts.slices));
	if (d->slipped_ns)
		printf("%s could not keep up with real time: it is %.3f s behind\n",
		       d->state->info.name, (double)d->slipped_ns / 1e9);
}

void gp_sim_server_report(struct server *s, bool json)
{
	uint64_t for_ns = gp_monotonic_ns() - s->began_ns;

	if (json)
		printf("{\"ran_ns\":%llu,\"wrong_packets\":%llu,\"devices\":[", plain(for_ns),
		       plain(s->invalid));
	for (uint32_t i = 0; i < s->ndevices; i++) {
		struct device *d = &s->device[i];

		gp_sim_device_advance(d);
		gp_sim_finish(d->sim, for_ns - d->slipped_ns);
		if (json)
			json_device(d);
		else
			print_device(d, for_ns);
	}
	if (json)
		puts("]}");
}
