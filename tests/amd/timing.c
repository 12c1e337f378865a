/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

uint64_t percentile(uint64_t *ns, unsigned n, unsigned percent)
{
	qsort(ns, n, sizeof *ns, compare_ns);
	return ns[(n - 1) * percent / 100];
}

uint64_t timer_lateness_ns(void)
{
	uint64_t late[40];

	for (unsigned i = 0; i < 40; i++) {
		struct timespec time = {.tv_nsec = GP_NS_PER_MS};
		uint64_t begin_ns = aw_now();

		nanosleep(&time, NULL);
		late[i] = aw_now() - begin_ns - GP_NS_PER_MS;
	}
	return percentile(late, 40, 90);
}

uint64_t worse_lateness_ns(uint64_t before_ns)
{
	uint64_t after_ns = timer_lateness_ns();

	return before_ns > after_ns ? before_ns : after_ns;
}

static bool timing_is_any(const void *arg, const struct kfd_queue_snapshot_entry *queue)
{
	(void)arg;
	(void)queue;
	return true;
}

uint64_t bare_suspend_ns(pid_t pid, unsigned n)
{
	const struct gp_amd_choice all = {.is_meant = timing_is_any};
	uint64_t *ns = calloc(n, sizeof *ns), p50;
	enum gp_amd_rule rule = GP_AMD_RULE_UNKNOWN;
	struct gp_amd_session s;
	int kfd = gp_kfd_open(NULL);

	assert_int_equal(gp_amd_session_open(&s, kfd, pid, &rule, NULL), 0);
	for (unsigned i = 0; i < n; i++) {
		uint64_t begin_ns;

		gp_amd_session_tick(&s);
		begin_ns = aw_now();
		assert_true(gp_amd_session_suspend(&s, &all, KFD_GRACE_DEFAULT) > 0);
		ns[i] = aw_now() - begin_ns;
		assert_true(gp_amd_session_resume(&s, &all) > 0);
		usleep(200);
	}
	gp_amd_session_close(&s);
	while (s.link != GP_AMD_UNLINKED) { /* or no other debugger can attach */
		usleep(1000);
		gp_amd_session_tick(&s);
	}
	close(kfd);
	p50 = percentile(ns, n, 50);
	free(ns);
	return p50;
}
