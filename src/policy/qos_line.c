/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the line of requests is that one in a hundred meets.
 *
 * Requests of e come at random and keep the device busy for a part u of the time; whoever finds
 * nobody before it has to wait for B first (the end of a window, a hold). That is a queue with a
 * setup time: a request waits for what it would without (M/D/1), and for B or, if it came
 * meanwhile, for the rest of B. The tail of the former is C exp(-x t / e) with u = x / (exp(x) -
 * 1), and so of all requests C (1 + u / x) / (1 + u B / e) times exp(-x h / e) wait for h longer
 * than B. C and x are approximated, to 5 % for u up to 0.95. Bursts make longer lines.
 */
#include "policy/qos.h"

#define LOAD_MOST  (GP_PPM * 49 / 50) /* nearer to 1 there is no end to it */
#define EACH_MOST  (1000 * GP_MS)
#define SETUP_MOST (1000 * GP_MS)

/* The natural logarithm of `n`, at least 1. All in ppm. */
static uint64_t logarithm(uint64_t n)
{
	const uint64_t of_two = 693147;
	uint64_t whole = 0, part;

	for (; n >= 2 * GP_PPM; n /= 2)
		whole += of_two;
	part = n > GP_PPM ? n - GP_PPM : 0;
	part += part * (GP_PPM - part) / (3 * GP_PPM);
	return whole + part * of_two / GP_PPM;
}

uint64_t gp_qos_line(uint64_t each_ns, uint64_t load_ppm, uint64_t setup_ns)
{
	uint64_t u = load_ppm < LOAD_MOST ? load_ppm : LOAD_MOST, slope, setups, late;
	uint64_t scale = each_ns / EACH_MOST + 1; /* nothing overflows */

	each_ns /= scale;
	setup_ns /= scale;
	if (!each_ns)
		return 0;
	setup_ns = setup_ns < SETUP_MOST ? setup_ns : SETUP_MOST;
	/* 1 / x */
	slope = (GP_PPM * 8 / 10 + 2 * u - u * u / GP_PPM * 85 / 100) * GP_PPM / (4 * (GP_PPM - u));
	setups = GP_PPM + u * setup_ns / each_ns;
	/* 100 C (1 + u / x) / (1 + u B / e) */
	late = (27 * GP_PPM + 74 * u) * (GP_PPM + u * slope / GP_PPM) / setups;
	return each_ns * slope / GP_PPM * logarithm(late) / GP_PPM * scale;
}
