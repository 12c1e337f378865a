/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long requests wait for each other: the time that one request in a hundred exceeds.
 *
 * Requests of length e come at random and keep the device busy for the part u of the time. A
 * request that finds no other one waits for B first (the end of a window, or a hold). That is a
 * queue with a setup time. A request waits as long as without setup (M/D/1), plus B or, if it came
 * during the setup, the rest of B. The tail of the M/D/1 waiting time is C exp(-x t / e) with
 *     u = x / (exp(x) - 1),  C = (1 - u) / (u exp(x) - 1).
 * So the part of all requests that waits for more than B + h is
 *     C (1 + u / x (1 - exp(-x B / e))) / (1 + u B / e) exp(-x h / e).
 * Bursts make requests wait longer. All numbers are in ppm.
 */
#include "policy/qos/qos.h"

#define LOAD_LEAST (GP_PPM / 1000)
#define EACH_MOST  (1000 * GP_MS)
#define SETUP_MOST (1000 * GP_MS)
#define SLOPE_MOST (8 * GP_PPM) /* upper limit of x; x is 7.9 at the smallest load */

/*
 * The natural logarithm of `n` >= 1, both in millionths. Powers of two are taken out; for the rest,
 * 1 <= n < 2, the series 2 (w + w^3 / 3 + w^5 / 5) with w = (n - 1) / (n + 1) is off by less than
 * 0.0002.
 */
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

/* For `x` up to SLOPE_MOST: the series for x / 16, to the 16th power. */
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

/* The x that belongs to a load of `u`: the larger the load, the smaller is x. */
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

/*
 * The exact result if fewer than one request in a hundred wait, or if they wait for less than one
 * request: the part (1 - u) exp(u t / e) waits for t at most. The tail formula is not exact there.
 * UINT64_MAX = they wait longer than that.
 */
static uint64_t short_wait(uint64_t each_ns, uint64_t u)
{
	uint64_t wait_ppm;

	if (u <= GP_PPM / 100)
		return 0;
	wait_ppm = logarithm(GP_PPM * 99 / 100 * GP_PPM / (GP_PPM - u)) * GP_PPM / u;
	return wait_ppm < GP_PPM ? each_ns * wait_ppm / GP_PPM : UINT64_MAX;
}

uint64_t gp_qos_wait_for_others(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns)
{
	uint64_t u = load_ppm < LOAD_LEAST         ? LOAD_LEAST
		     : load_ppm < GP_QOS_LOAD_MOST ? load_ppm
						   : GP_QOS_LOAD_MOST;
	uint64_t scale = each_ns / EACH_MOST + 1; /* avoids overflow */
	uint64_t x = slope_of(u), power, late, passed, in_setup;

	each_ns /= scale;
	setup_ns /= scale;
	if (!each_ns)
		return 0;
	if (!setup_ns && short_wait(each_ns, u) != UINT64_MAX)
		return short_wait(each_ns, u) * scale;
	setup_ns = setup_ns < SETUP_MOST ? setup_ns : SETUP_MOST;
	power = u * exponential(x) / GP_PPM;
	late = 100 * (GP_PPM - u) * GP_PPM / (power > GP_PPM ? power - GP_PPM : 1);
	/* 1 - exp(-x B / e) */
	passed = x * setup_ns / each_ns;
	in_setup = passed < SLOPE_MOST ? GP_PPM - GP_PPM * GP_PPM / exponential(passed) : GP_PPM;
	late = late * (GP_PPM + u * in_setup / x) / (GP_PPM + u * setup_ns / each_ns);
	return each_ns * logarithm(late) / x * scale;
}
