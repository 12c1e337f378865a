/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/host.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "daemon/backlog.h"
#include "daemon/ring.h"
#include "hold/records.h"
#include "undo/undo.h"

#define NEWS_MAX         1024
#define LATE_MAX         16384 /* orders with an answer that may wait for room */
#define PUBLISH_EVERY_NS (100 * GP_NS_PER_MS)
#define HINT_NS          (10 * GP_NS_PER_MS) /* for so long announced work is waited for */
#define HOLD_LIMIT_NS    (10 * GP_NS_PER_S)  /* who waits for a hold gives up then */
#define HOLD_FAILURES    8                 /* or after so many (250 ms), if the back end says why */
#define HOLD_UNSAID_NS   (2 * GP_NS_PER_S) /* what it does not explain may pass by */

/* Events that are news whoever is interested. */
#define NEWS_ALWAYS                                                                 \
	(1u << GP_EVENT_TASK_IN | 1u << GP_EVENT_TASK_OUT | 1u << GP_EVENT_POLICY | \
	 1u << GP_EVENT_EJECTED | 1u << GP_EVENT_REFUSED | 1u << GP_EVENT_ADMITTED)

/* Somebody waits until a task is held, or released. */
struct waiting {
	uint64_t token;
	uint64_t task;
	bool held;
	uint64_t failures; /* of the task when it began */
	uint64_t since_ns;
};

struct gp_host {
	struct gp_host_config config;
	struct gp_gpu *gpu;
	struct gp_engine *engine;
	struct gp_undo_file *undo;
	uint64_t epoch; /* as last seen */
	uint64_t since_ns;
	pthread_t thread;

	/* Of the control thread. */
	unsigned unanswered;
	struct gp_backlog late; /* orders for which there is no room yet */

	/* Between both. */
	struct gp_ring orders, answers, news;
	int order_fd;
	struct gp_shots shots;
	_Atomic bool stop;
	_Atomic uint32_t wanted;
	_Atomic uint64_t lost;
	_Atomic uint64_t due_ns; /* the next look, at the latest */

	/* Of the device's thread. */
	int timer_fd;
	struct gp_seen newcomer; /* the last one that was classified */
	struct gp_hist lag_ns;
	uint64_t published_ns;
	bool at_once;     /* the next look is due because something happened, not by the clock */
	bool publish;     /* something changed that people want to see at once */
	bool tell;        /* the control thread has something to take */
	uint64_t dropped; /* news that did not fit, in this look */
	struct gp_answer answer[GP_ORDERS_MAX];
	unsigned nanswers;
	struct waiting waiting[GP_ORDERS_MAX];
	unsigned nwaiting;
};

/* ---- what the engine asks for ------------------------------------------------------------------
 */

static void classify(void *arg, const struct gp_seen *seen, struct gp_task_attr *attr)
{
	struct gp_host *h = arg;
	struct gp_entry entry;

	h->newcomer = *seen;
	if (gp_roster_find(h->config.roster, seen->pid, seen->start_time, &entry))
		*attr = entry.attr;
}

static int before_change(void *arg, const struct gp_undo *undo)
{
	struct gp_host *h = arg;
	int slot = h->undo ? gp_undo_put(h->undo, h->gpu->ops->name, undo) : 0;

	return slot < 0 ? slot : 0;
}

/* Grows when somebody put back what we had changed: a keeper that took us for dead, or an
 * administrator. */
static uint64_t epoch(void *arg)
{
	const struct gp_host *h = arg;

	return h->undo ? gp_undo_epoch(h->undo) : 0;
}

static void describe_task(struct gp_host *h, struct gp_news *news)
{
	struct gp_task_stats t;

	switch (news->event.kind) {
	case GP_EVENT_TASK_IN:
		if (!gp_engine_find_task(h->engine, news->event.task, &t))
			news->attr = t.attr;
		news->pid = h->newcomer.pid;
		news->start_time = h->newcomer.start_time;
		news->key = h->newcomer.key;
		news->seen_flags = h->newcomer.flags;
		memcpy(news->name, h->newcomer.name, sizeof news->name);
		break;
	case GP_EVENT_TASK_OUT: break;
	case GP_EVENT_EJECTED:
		snprintf(news->text, sizeof news->text, "%s", gp_engine_ejection(h->engine)->text);
		break;
	case GP_EVENT_POLICY:
		snprintf(news->text, sizeof news->text, "%s", gp_engine_policy(h->engine)->name);
		break;
	default:
		if (!gp_engine_find_task(h->engine, news->event.task, &t)) {
			news->held_by = t.held_by;
			news->attr = t.attr;
		}
	}
}

static void on_event(void *arg, const struct gp_event *event)
{
	struct gp_host *h = arg;
	struct gp_news news = {.event = *event};
	uint32_t wanted = atomic_load_explicit(&h->wanted, memory_order_relaxed) | NEWS_ALWAYS;

	if (event->kind == GP_EVENT_TASK_IN || event->kind == GP_EVENT_TASK_OUT)
		h->publish = true;
	if (!(wanted & 1u << event->kind))
		return;
	describe_task(h, &news);
	h->dropped += !gp_ring_put(&h->news, &news);
	h->tell = true;
}

/* ---- orders ------------------------------------------------------------------------------------
 */

/* Kept until there is a picture that shows what was done: who was answered looks at it. */
static void answer(struct gp_host *h, uint64_t token, int status, const char *text)
{
	struct gp_answer *a = &h->answer[h->nanswers];

	if (!token)
		return;
	*a = (struct gp_answer){.token = token, .status = status};
	snprintf(a->text, sizeof a->text, "%s", text);
	h->nanswers++;
}

static void give_answers(struct gp_host *h)
{
	for (unsigned i = 0; i < h->nanswers; i++)
		gp_ring_put(&h->answers, &h->answer[i]); /* has room for all on their way */
	h->tell |= h->nanswers;
	h->nanswers = 0;
}

/* Why the back end says that it failed, else which device it was. */
static void answer_failure(struct gp_host *h, uint64_t token, const struct gp_task_stats *t,
                           int status)
{
	struct gp_error why = {0};

	if (t && h->gpu->ops->why)
		h->gpu->ops->why(h->gpu, t->handle, &why);
	if (!*why.text)
		gp_fail(&why, status, "%s's driver does not do it (%s); its log may say why",
		        h->gpu->info.name, gp_error_name(status));
	answer(h, token, status, why.text);
}

static void begin_waiting(struct gp_host *h, uint64_t now_ns, const struct gp_order *o)
{
	struct gp_task_stats t = {0};

	if (!o->token || gp_engine_find_task(h->engine, o->task, &t))
		return;
	h->waiting[h->nwaiting++] = (struct waiting){.token = o->token,
	                                             .task = o->task,
	                                             .held = o->kind == GP_ORDER_HOLD,
	                                             .failures = t.failures,
	                                             .since_ns = now_ns};
}

static const char *refusal(int status)
{
	return status == -ENOTSUP  ? "this device cannot hold tasks"
	       : status == -ENOSPC ? "this device cannot hold more tasks at one time"
	                           : "the task has ended";
}

static void obey(struct gp_host *h, uint64_t now_ns, const struct gp_order *o)
{
	struct gp_error err = {0};
	int r = 0;

	switch (o->kind) {
	case GP_ORDER_ATTR: r = gp_engine_set_attr(h->engine, o->task, &o->attr); break;
	case GP_ORDER_HOLD: r = gp_engine_user_hold(h->engine, o->task); break;
	case GP_ORDER_RELEASE: r = gp_engine_user_release(h->engine, o->task); break;
	case GP_ORDER_POLICY: r = gp_engine_set_policy(h->engine, now_ns, &o->policy, &err); break;
	case GP_ORDER_BRACKET: r = gp_engine_bracket(h->engine, now_ns, o->key, o->begins); break;
	case GP_ORDER_HINT: r = gp_engine_hint(h->engine, now_ns, o->key, HINT_NS); break;
	}
	h->publish |= o->token != 0;
	if (r || (o->kind != GP_ORDER_HOLD && o->kind != GP_ORDER_RELEASE))
		answer(h, o->token, r, *err.text ? err.text : r ? refusal(r) : "");
	else
		begin_waiting(h, now_ns, o);
}

static void obey_all(struct gp_host *h, uint64_t now_ns)
{
	struct gp_order o;

	while (gp_ring_take(&h->orders, &o))
		obey(h, now_ns, &o);
}

static bool is_hopeless(struct gp_host *h, uint64_t now_ns, const struct waiting *w,
                        const struct gp_task_stats *t)
{
	uint64_t waited_ns = now_ns - w->since_ns;
	struct gp_error why = {0};

	if (waited_ns >= HOLD_LIMIT_NS)
		return true;
	if (t->failures < w->failures + HOLD_FAILURES)
		return false;
	if (h->gpu->ops->why)
		h->gpu->ops->why(h->gpu, t->handle, &why);
	return why.code || waited_ns >= HOLD_UNSAID_NS;
}

/* Whether the wait is over; it is answered then. */
static bool is_over(struct gp_host *h, uint64_t now_ns, const struct waiting *w)
{
	struct gp_task_stats t;

	if (gp_engine_find_task(h->engine, w->task, &t)) {
		answer(h, w->token, -ESRCH, refusal(-ESRCH));
		return true;
	}
	if (w->held && !(t.held_by & GP_HELD_BY_USER)) {
		answer(h, w->token, -ECANCELED, "somebody released it meanwhile");
		return true;
	}
	if (w->held ? t.held : !t.held || (t.held_by & GP_HELD_BY_POLICY)) {
		answer(h, w->token, 0, "");
		return true;
	}
	if (!is_hopeless(h, now_ns, w, &t))
		return false;
	if (w->held)
		gp_engine_user_release(h->engine, w->task); /* not to come true later */
	if (!gp_process_lives(t.pid, t.start_time))
		answer(h, w->token, -ESRCH, refusal(-ESRCH));
	else
		answer_failure(h, w->token, &t,
		               now_ns - w->since_ns < HOLD_LIMIT_NS ? -EIO : -ETIMEDOUT);
	return true;
}

static void answer_waiting(struct gp_host *h, uint64_t now_ns)
{
	unsigned left = 0;

	for (unsigned i = 0; i < h->nwaiting; i++)
		if (!is_over(h, now_ns, &h->waiting[i]))
			h->waiting[left++] = h->waiting[i];
		else
			h->publish = true;
	h->nwaiting = left;
}

/* ---- the thread --------------------------------------------------------------------------------
 */

static void publish(struct gp_host *h, uint64_t now_ns)
{
	if (!h->publish && now_ns - h->published_ns < PUBLISH_EVERY_NS)
		return;
	gp_shots_take(&h->shots, h->engine, now_ns, h->since_ns, &h->lag_ns);
	h->published_ns = now_ns;
	h->publish = false;
}

/*
 * Somebody undid our work. Where the keeper did, the records stay, and what we want holds as
 * before. A record that is gone was taken away by a person (gpreempt resume): then a hold by hand
 * is over.
 */
static void notice_resuming(struct gp_host *h, uint64_t now_ns)
{
	uint64_t now = epoch(h);

	if (now == h->epoch)
		return;
	h->epoch = now;
	for (unsigned i = 0; i < gp_engine_tasks(h->engine); i++) {
		struct gp_news news = {.event = {.kind = GP_EVENT_RELEASED, .now_ns = now_ns},
		                       .resumed = true};
		struct gp_undo_entry e;
		struct gp_task_stats t;

		gp_engine_task_stats(h->engine, i, &t);
		if (!(t.held_by & GP_HELD_BY_USER) ||
		    gp_records_find(h->undo, t.pid, t.start_time, &e))
			continue;
		gp_engine_user_release(h->engine, t.id);
		news.event.task = t.id;
		h->dropped += !gp_ring_put(&h->news, &news);
		h->tell = true;
	}
}

static void look(struct gp_host *h)
{
	uint64_t now_ns = gp_now_ns(&gp_clock_monotonic), next_ns;

	notice_resuming(h, now_ns);
	obey_all(h, now_ns);
	next_ns = gp_engine_step(h->engine, now_ns);
	answer_waiting(h, now_ns);
	publish(h, now_ns);
	give_answers(h);
	if (h->dropped) { /* not before there is a picture that shows what they were about */
		atomic_fetch_add_explicit(&h->lost, h->dropped, memory_order_release);
		h->dropped = 0;
	}
	if (h->nwaiting && next_ns > now_ns + GP_NS_PER_MS)
		next_ns = now_ns + GP_NS_PER_MS; /* somebody waits for what it brings */
	h->at_once = !gp_engine_next_ns(h->engine);
	if (h->at_once)
		next_ns = now_ns;
	atomic_store_explicit(&h->due_ns, next_ns, memory_order_relaxed);
	if (h->tell) {
		h->tell = false;
		eventfd_write(h->config.wake_fd, 1);
	}
}

/* Until the next look is due, or something happens. */
static void wait(struct gp_host *h, int news_fd)
{
	uint64_t due_ns = atomic_load_explicit(&h->due_ns, memory_order_relaxed), now_ns, ignored;
	struct itimerspec at = {.it_value = gp_timespec(due_ns ? due_ns : 1)};
	struct pollfd p[3] = {{.fd = h->timer_fd, .events = POLLIN},
	                      {.fd = h->order_fd, .events = POLLIN},
	                      {.fd = news_fd, .events = POLLIN}};

	now_ns = gp_now_ns(&gp_clock_monotonic);
	if (due_ns <= now_ns) {
		if (!h->at_once) /* the last look took so long */
			gp_hist_add(&h->lag_ns, now_ns - due_ns);
		return;
	}
	timerfd_settime(h->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	if (poll(p, news_fd >= 0 ? 3 : 2, -1) < 0)
		return; /* a signal; the engine says when to look */
	now_ns = gp_now_ns(&gp_clock_monotonic);
	if (p[0].revents && now_ns > due_ns)
		gp_hist_add(&h->lag_ns, now_ns - due_ns);
	if (p[1].revents && read(h->order_fd, &ignored, sizeof ignored) < 0)
		return;
	if (news_fd >= 0 && p[2].revents) {
		if (read(news_fd, &ignored, sizeof ignored) < 0)
			return;
		gp_engine_trigger(h->engine, true);
	}
}

/* What is refused here is said and done without: the daemon is slower then, not wrong. */
static void settle_in(const struct gp_host *h)
{
	char name[16];
	int r;

	snprintf(name, sizeof name, "device-%u", h->config.number);
	pthread_setname_np(pthread_self(), name);
	prctl(PR_SET_TIMERSLACK, 1ul);
	if (h->config.cpu >= 0) {
		cpu_set_t cpus;

		CPU_ZERO(&cpus);
		CPU_SET((size_t)h->config.cpu, &cpus);
		r = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
		if (r)
			gp_log(GP_LOG_WARN, "thread.cpu", "device=%u cpu=%d errno=%d",
			       h->config.number, h->config.cpu, r);
	}
	if (h->config.realtime) {
		struct sched_param p = {.sched_priority = h->config.realtime};

		r = pthread_setschedparam(pthread_self(), SCHED_FIFO, &p);
		if (r)
			gp_log(GP_LOG_WARN, "thread.realtime", "device=%u priority=%d errno=%d",
			       h->config.number, h->config.realtime, r);
	}
}

static void *run(void *arg)
{
	struct gp_host *h = arg;
	int news_fd = h->gpu->ops->event_fd ? h->gpu->ops->event_fd(h->gpu) : -1;

	settle_in(h);
	while (!atomic_load_explicit(&h->stop, memory_order_acquire)) {
		look(h);
		wait(h, news_fd);
	}
	return NULL;
}

/* ---- the control thread's side -----------------------------------------------------------------
 */

static void free_host(struct gp_host *h)
{
	if (h->engine)
		gp_engine_free(h->engine); /* puts everything back */
	h->gpu->ops->close(h->gpu);
	gp_undo_close(h->undo);
	if (h->order_fd >= 0)
		close(h->order_fd);
	if (h->timer_fd >= 0)
		close(h->timer_fd);
	gp_ring_free(&h->orders);
	gp_ring_free(&h->answers);
	gp_ring_free(&h->news);
	gp_shots_free(&h->shots);
	gp_backlog_free(&h->late);
	free(h);
}

static int make_engine(struct gp_host *h, struct gp_error *err)
{
	const struct gp_host_config *c = &h->config;
	struct gp_engine_config config = {
		.gpu = h->gpu,
		.classify = classify,
		.before_change = before_change,
		.epoch = epoch,
		.on_event = on_event,
		.arg = h,
		.brackets = true,
		.decide_clock = &gp_clock_thread_cpu,
		.check_ns = c->check_ns,
		.check_lc_ns = c->check_lc_ns,
		.check_quiet_ns = c->check_quiet_ns,
		.scan_every_ns = c->scan_every_ns,
		.starve_limit_ns = c->starve_limit_ns,
	};
	int r = gp_engine_new(&config, &h->engine);

	return r ? r : gp_engine_set_policy(h->engine, h->since_ns, &c->policy, err);
}

static int make_host(struct gp_host *h, struct gp_error *err)
{
	int r = 0;

	h->order_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (h->order_fd < 0 || h->timer_fd < 0)
		return -errno;
	r = gp_ring_init(&h->orders, sizeof(struct gp_order), GP_ORDERS_MAX);
	if (!r)
		r = gp_ring_init(&h->answers, sizeof(struct gp_answer), GP_ORDERS_MAX);
	if (!r)
		r = gp_ring_init(&h->news, sizeof(struct gp_news), NEWS_MAX);
	if (!r && h->config.undo)
		r = gp_undo_open(&h->undo, true, err);
	h->epoch = epoch(h);
	return r ? r : make_engine(h, err);
}

int gp_host_start(const struct gp_host_config *config, struct gp_host **host, struct gp_error *err)
{
	struct gp_host *h = calloc(1, sizeof *h);
	int r;

	*host = NULL;
	if (!h) {
		config->gpu->ops->close(config->gpu);
		return -ENOMEM;
	}
	h->config = *config;
	h->gpu = config->gpu;
	h->order_fd = h->timer_fd = -1;
	h->since_ns = gp_now_ns(&gp_clock_monotonic);
	gp_hist_init(&h->lag_ns);
	h->late.size = sizeof(struct gp_order);
	gp_shots_init(&h->shots);
	atomic_init(&h->due_ns, h->since_ns);
	r = make_host(h, err);
	if (!r)
		r = -pthread_create(&h->thread, NULL, run, h);
	if (r) {
		gp_fail(err, r, "cannot schedule %s: %s", h->gpu->info.name, gp_error_name(r));
		free_host(h); /* with the device, and its name */
		return r;
	}
	*host = h;
	return 0;
}

void gp_host_stop(struct gp_host *h)
{
	atomic_store_explicit(&h->stop, true, memory_order_release);
	eventfd_write(h->order_fd, 1);
	pthread_join(h->thread, NULL);
	free_host(h);
}

/* false: there is no room for it, or for its answer. */
static bool hand_over(struct gp_host *h, const struct gp_order *order)
{
	if (order->token && h->unanswered == GP_ORDERS_MAX)
		return false;
	if (!gp_ring_put(&h->orders, order))
		return false;
	h->unanswered += order->token != 0;
	eventfd_write(h->order_fd, 1);
	return true;
}

void gp_host_push(struct gp_host *h)
{
	const struct gp_order *order;

	while ((order = gp_backlog_first(&h->late)) && hand_over(h, order))
		gp_backlog_drop_first(&h->late);
}

/* Those that somebody waits for have an end: they come from clients, as many as these like. */
int gp_host_order(struct gp_host *h, const struct gp_order *order)
{
	bool passing = order->kind == GP_ORDER_BRACKET || order->kind == GP_ORDER_HINT;

	gp_host_push(h);
	if ((!h->late.n || passing) && hand_over(h, order))
		return 0;
	if (passing || (order->token && h->late.n >= LATE_MAX))
		return -EAGAIN;
	return gp_backlog_add(&h->late, order);
}

bool gp_host_next_answer(struct gp_host *h, struct gp_answer *answer)
{
	if (!gp_ring_take(&h->answers, answer))
		return false;
	h->unanswered--;
	gp_host_push(h);
	return true;
}

bool gp_host_next_news(struct gp_host *h, struct gp_news *news)
{
	return gp_ring_take(&h->news, news);
}

uint64_t gp_host_lost_news(struct gp_host *h)
{
	return atomic_exchange_explicit(&h->lost, 0, memory_order_acquire);
}

void gp_host_want(struct gp_host *h, uint32_t kinds)
{
	atomic_store_explicit(&h->wanted, kinds, memory_order_relaxed);
}

const struct gp_shot *gp_host_shot(struct gp_host *h)
{
	return gp_shots_look(&h->shots);
}

const struct gp_gpu_info *gp_host_info(const struct gp_host *h)
{
	return &h->gpu->info;
}

const char *gp_host_backend(const struct gp_host *h)
{
	return h->gpu->ops->name;
}

uint32_t gp_host_caps(const struct gp_host *h)
{
	return h->gpu->info.caps | GP_CAP_BRACKETS;
}

uint64_t gp_host_overdue_ns(const struct gp_host *h, uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&h->due_ns, memory_order_relaxed);

	return now_ns > due_ns ? now_ns - due_ns : 0;
}
