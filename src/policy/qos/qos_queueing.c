/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the line of requests is that one in a hundred meets.
 *
 * Requests of e come at random and keep the device busy for a part u of the time; whoever finds
 * nobody before it has to wait for B first (the end of a window, a hold). That is a queue with a
 * setup time: a request waits for what it would without (M/D/1), and for B or, if it came
 * meanwhile, for the rest of B. The tail of the former is C exp(-x t / e) with
 *     u = x / (exp(x) - 1),  C = (1 - u) / (u exp(x) - 1),
 * and so of all requests C (1 + u / x (1 - exp(-x B / e))) / (1 + u B / e) times exp(-x h / e) wait
 * for h longer than B. Bursts make longer lines. All in ppm.
 */
#include "policy/qos/qos.h"

#define LOAD_LEAST (GP_PPM / 1000)
#define EACH_MOST  (1000 * GP_MS)
#define SETUP_MOST (1000 * GP_MS)
#define SLOPE_MOST (8 * GP_PPM) /* of x; it is 7.9 where the load is least */

/* The natural logarithm of `n`, at least 1: by w = (n - 1) / (n + 1), 2 (w + w^3 / 3 + w^5 / 5). */
static uint64_t logarithm(uint64_t n)
{
	const uint64_t of_two = 693147;
	uint64_t whole = 0, w, square;

	for (; n >= 2 * GP_PPM; n /= 2)
		whole += of_two;
	w = n > GP_PPM ? (n - GP_PPM) * GP_PPM / (n + GP_PPM) : 0;
	square = w * w / GP_PPM;
	return whole +
	       2 * (w + w * square / GP_PPM / 3 + w * square / GP_PPM * square / GP_PPM / 5);
}

/* For `x` up to SLOPE_MOST: the series for a sixteenth of it, to the sixteenth power. */
static uint64_t exponential(uint64_t x)
{
	uint64_t part = x / 16, term = GP_PPM, sum = GP_PPM;

	for (uint64_t i = 1; i <= 6; i++) {
		term = term * part / (i * GP_PPM);
		sum += term;
	}
	for (int i = 0; i < 4; i++)
		sum = sum * sum / GP_PPM;
	return sum;
}

/* The x to which a load of `u` belongs: the larger the load, the smaller it is. */
static uint64_t slope_of(uint64_t u)
{
	uint64_t low = 1, high = SLOPE_MOST;

	while (low < high) {
		uint64_t mid = (low + high) / 2;

		if (mid * GP_PPM > u * (exponential(mid) - GP_PPM))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Where fewer wait than one in a hundred, or those for less than one request, this is exact and the
 * tail is not: (1 - u) exp(u t / e) wait for t at most. UINT64_MAX: for more than that. */
static uint64_t short_line(uint64_t each_ns, uint64_t u)
{
	uint64_t wait_ppm;

	if (u <= GP_PPM / 100)
		return 0;
	wait_ppm = logarithm(GP_PPM * 99 / 100 * GP_PPM / (GP_PPM - u)) * GP_PPM / u;
	return wait_ppm < GP_PPM ? each_ns * wait_ppm / GP_PPM : UINT64_MAX;
}

uint64_t gp_qos_line(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns)
{
	uint64_t u = load_ppm < LOAD_LEAST         ? LOAD_LEAST
	             : load_ppm < GP_QOS_LOAD_MOST ? load_ppm
	                                           : GP_QOS_LOAD_MOST;
	uint64_t scale = each_ns / EACH_MOST + 1; /* nothing overflows */
	uint64_t x = slope_of(u), power, late, passed, in_setup;

	each_ns /= scale;
	setup_ns /= scale;
	if (!each_ns)
		return 0;
	if (!setup_ns && short_line(each_ns, u) != UINT64_MAX)
		return short_line(each_ns, u) * scale;
	setup_ns = setup_ns < SETUP_MOST ? setup_ns : SETUP_MOST;
	power = u * exponential(x) / GP_PPM;
	late = 100 * (GP_PPM - u) * GP_PPM / (power > GP_PPM ? power - GP_PPM : 1);
	/* 1 - exp(-x B / e) */
	passed = x * setup_ns / each_ns;
	in_setup = passed < SLOPE_MOST ? GP_PPM - GP_PPM * GP_PPM / exponential(passed) : GP_PPM;
	late = late * (GP_PPM + u * in_setup / x) / (GP_PPM + u * setup_ns / each_ns);
	return each_ns * logarithm(late) / x * scale;
}
