// SPDX-License-Identifier: Apache-2.0
/*
 * The CUDA loads of the benchmark: fixed amounts of deterministic work, so that throughput stays
 * honest under preemption and every result can be compared bit by bit.
 *
 *     load be long|short|low|memory|idle --out FILE [--lock FILE]
 *     load lc --kernel-us N --period-us N --count N [--warmup N] [--seed N] [--iterations N]
 *             [--arrivals even|poisson] --out FILE [--lock FILE]
 *
 * Prints "ready" when it has a context and a reference result (made under an exclusive flock on
 * the lock file, so that no other load disturbs it), starts at a line on stdin, ends on
 * SIGTERM or, lc, after COUNT requests, and then writes FILE: lines of "name value", "l NS" for a
 * latency, "d NS" for the CLOCK_MONOTONIC time of a finished kernel, "end". With poisson arrivals a
 * latency counts from when the request was due, so that a line of requests shows. Exit status: 0, 1
 * after a CUDA error, 2 usage, 3 when a result was wrong, 77 without a GPU.
 */
#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define CHECK(call)                                                                           \
	do {                                                                                  \
		cudaError_t error_ = (call);                                                  \
		if (error_ != cudaSuccess) {                                                  \
			fprintf(stderr, "load: %s: %s\n", #call, cudaGetErrorString(error_)); \
			exit(1);                                                              \
		}                                                                             \
	} while (0)

enum { EXIT_WRONG_RESULT = 3, EXIT_SKIPPED = 77 };
enum { SAMPLES_MAX = 1 << 20 }; /* 2.9 hours of 10 ms, 8 MiB */

static volatile sig_atomic_t told_to_end;

static void on_term(int)
{
	told_to_end = 1;
}

static uint64_t now_ns()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- kernels ---- */

/* What the kernels themselves found: every launch checks its own results. */
struct tally {
	unsigned long long blocks; /* finished */
	unsigned long long wrong;  /* results that differ from the reference */
};

__device__ void report(tally *tally, unsigned *out, const unsigned *reference, unsigned place,
                       unsigned result)
{
	out[place] = result;
	if (reference && result != reference[place])
		atomicAdd(&tally->wrong, 1ull);
	if (threadIdx.x == 0)
		atomicAdd(&tally->blocks, 1ull);
}

/*
 * Two logistic maps: four floating-point instructions a turn. They are chaotic, so one wrong bit
 * anywhere changes the result, and bounded, so the arithmetic never degenerates to infinities.
 */
__global__ void __launch_bounds__(1024, 2)
	arithmetic(tally *tally, unsigned *out, const unsigned *reference, unsigned places,
                   unsigned turns)
{
	unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) % places;
	float x = 0.1f + 0.8f * (float)place / (float)places, y = 1.0f - x;

	for (unsigned i = 0; i < turns; i++) {
		float s = __fmul_rn(3.9f, x), t = __fmul_rn(3.8f, y);

		x = __fmaf_rn(-s, x, s);
		y = __fmaf_rn(-t, y, t);
	}
	report(tally, out, reference, place, __float_as_uint(x) * 31u + __float_as_uint(y));
}

/* Reads `from` and writes `to`, `turns` times over: bound by memory. */
__global__ void __launch_bounds__(1024, 2)
	streaming(tally *tally, unsigned *out, const unsigned *reference, uint4 *to,
                  const uint4 *from, size_t count, unsigned turns)
{
	unsigned place = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
	size_t stride = (size_t)gridDim.x * blockDim.x;

	for (unsigned turn = 0; turn < turns; turn++)
		for (size_t i = place; i < count; i += stride) {
			uint4 v = from[i];

			v.x = v.x * 1664525u + turn;
			v.y = v.y * 1664525u + turn;
			v.z = v.z * 1664525u + turn;
			v.w = v.w * 1664525u + turn;
			to[i] = v;
			sum = sum * 31u + (v.x ^ v.y ^ v.z ^ v.w);
		}
	report(tally, out, reference, place, sum);
}

__global__ void fill(uint4 *to, size_t count)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x) {
		unsigned h = (unsigned)i * 2654435761u;

		to[i] = make_uint4(h, h ^ 0x9e3779b9u, h + 0x7f4a7c15u, ~h);
	}
}

/* A sum of words times their place: the order of the additions does not matter. */
__global__ void sum_words(unsigned long long *sum, const unsigned *word, size_t count)
{
	unsigned long long own = 0;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += (size_t)gridDim.x * blockDim.x)
		own += word[i] * (2 * i + 1ull);
	atomicAdd(sum, own);
}

/* ---- a load on the GPU ---- */

struct shape {
	const char *name;
	unsigned blocks_per_sm, threads, waves, turns;
	size_t stream_bytes; /* 0: arithmetic; else read this much and write as much a turn */
};

/* Turns for an H200 at 1.9 GHz: long, short and low 13.6 ms, a wave of short 70 us, memory 9 ms. */
static const shape be_shapes[] = {
	{"long", 2, 1024, 1, 400000, 0}, {"short", 2, 1024, 195, 2050, 0},
	{"low", 1, 64, 1, 3200000, 0},   {"memory", 2, 1024, 1, 8, (size_t)2 << 30},
	{"idle", 2, 1024, 1, 400000, 0},
};

static const shape lc_shape = {"lc", 1, 256, 1, 0, 0};

struct load {
	shape form;
	unsigned blocks, places;
	cudaStream_t stream;
	tally *found;
	unsigned *out, *reference;
	uint4 *to, *from;
	unsigned long long reference_sum, launches;
	char gpu[256];
};

static void launch_against(load *l, const unsigned *reference)
{
	if (l->form.stream_bytes)
		streaming<<<l->blocks, l->form.threads, 0, l->stream>>>(
			l->found, l->out, reference, l->to, l->from,
			l->form.stream_bytes / sizeof(uint4), l->form.turns);
	else
		arithmetic<<<l->blocks, l->form.threads, 0, l->stream>>>(
			l->found, l->out, reference, l->places, l->form.turns);
	CHECK(cudaGetLastError());
}

static void launch(load *l)
{
	launch_against(l, l->reference);
	l->launches++;
}

/* Of all that the last kernel wrote. */
static unsigned long long output_sum(load *l)
{
	const unsigned *word = l->to ? (const unsigned *)l->to : l->out;
	size_t count = l->to ? l->form.stream_bytes / sizeof *word : l->places;
	unsigned long long *on_gpu, sum;

	CHECK(cudaMalloc(&on_gpu, sizeof *on_gpu));
	CHECK(cudaMemsetAsync(on_gpu, 0, sizeof *on_gpu, l->stream));
	sum_words<<<256, 256, 0, l->stream>>>(on_gpu, word, count);
	CHECK(cudaMemcpyAsync(&sum, on_gpu, sizeof sum, cudaMemcpyDeviceToHost, l->stream));
	CHECK(cudaStreamSynchronize(l->stream));
	CHECK(cudaFree(on_gpu));
	return sum;
}

static void open_gpu(load *l, const shape *form, unsigned flags)
{
	cudaDeviceProp gpu;
	int count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	if (error != cudaSuccess || !count) {
		fprintf(stderr, "load: no GPU: %s\n",
		        error != cudaSuccess ? cudaGetErrorString(error) : "none found");
		exit(EXIT_SKIPPED);
	}
	CHECK(cudaSetDeviceFlags(flags));
	CHECK(cudaGetDeviceProperties(&gpu, 0));
	snprintf(l->gpu, sizeof l->gpu, "%s", gpu.name);
	l->form = *form;
	l->places = (unsigned)gpu.multiProcessorCount * form->blocks_per_sm * form->threads;
	l->blocks = (unsigned)gpu.multiProcessorCount * form->blocks_per_sm * form->waves;
	CHECK(cudaStreamCreate(&l->stream));
	CHECK(cudaMalloc(&l->found, sizeof *l->found));
	CHECK(cudaMalloc(&l->out, l->places * sizeof *l->out));
	CHECK(cudaMalloc(&l->reference, l->places * sizeof *l->reference));
	if (form->stream_bytes) {
		CHECK(cudaMalloc(&l->to, form->stream_bytes));
		CHECK(cudaMalloc(&l->from, form->stream_bytes));
		fill<<<1024, 256, 0, l->stream>>>(l->from, form->stream_bytes / sizeof(uint4));
		CHECK(cudaGetLastError());
	}
	CHECK(cudaStreamSynchronize(l->stream));
}

/* The first result is made undisturbed. All others must equal it. */
static void make_reference(load *l)
{
	launch_against(l, NULL);
	CHECK(cudaMemcpyAsync(l->reference, l->out, l->places * sizeof *l->out,
	                      cudaMemcpyDeviceToDevice, l->stream));
	l->reference_sum = output_sum(l);
	CHECK(cudaMemsetAsync(l->found, 0, sizeof *l->found, l->stream));
	CHECK(cudaStreamSynchronize(l->stream));
}

/* Whether every launch since make_reference did all its blocks and found nothing wrong. */
static bool verify(load *l, FILE *out)
{
	tally found;
	unsigned long long sum, blocks = l->launches * l->blocks;

	CHECK(cudaStreamSynchronize(l->stream));
	CHECK(cudaMemcpy(&found, l->found, sizeof found, cudaMemcpyDeviceToHost));
	sum = output_sum(l);
	if (!found.wrong && found.blocks == blocks && sum == l->reference_sum) {
		fprintf(out, "check ok %016llx\n", sum);
		return true;
	}
	fprintf(out,
	        "check mismatch %llu wrong results; %llu of %llu blocks; sum %016llx, not "
	        "%016llx\n",
	        found.wrong, found.blocks, blocks, sum, l->reference_sum);
	return false;
}

/* ---- how long a kernel takes, for the lc load ---- */

static double kernel_us(load *l, unsigned turns)
{
	float ms[15];
	cudaEvent_t begin, end;

	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	l->form.turns = turns;
	for (float &one : ms) {
		CHECK(cudaEventRecord(begin, l->stream));
		launch_against(l, NULL);
		CHECK(cudaEventRecord(end, l->stream));
		CHECK(cudaEventSynchronize(end));
		CHECK(cudaEventElapsedTime(&one, begin, end));
	}
	std::sort(ms, ms + 15);
	CHECK(cudaEventDestroy(begin));
	CHECK(cudaEventDestroy(end));
	return 1e3 * ms[7];
}

/* Two lengths give the cost of a turn and of a launch. */
static unsigned turns_for(load *l, double want_us)
{
	const unsigned few = 2000, many = 22000;
	uint64_t warm_ns = now_ns() + 200000000;
	double short_us, long_us, turn_us;

	while (now_ns() < warm_ns) /* until the clocks are up */
		kernel_us(l, many);
	short_us = kernel_us(l, few);
	long_us = kernel_us(l, many);
	turn_us = (long_us - short_us) / (many - few);
	return (unsigned)std::max(1.0, few + (want_us - short_us) / turn_us);
}

/* ---- talking to the runner ---- */

struct options {
	const char *role, *kind, *out, *lock, *arrivals;
	uint64_t kernel_us, period_us, count, warmup, seed, iterations;
};

/* Held from here to the `ready` line; the benchmark's loads get ready one after the other. */
static int take_lock(const char *path)
{
	int fd;

	if (!path)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX)) {
		fprintf(stderr, "load: cannot lock %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return fd;
}

/* False when it is to end instead. */
static bool wait_for_go(int lock)
{
	char byte;

	if (lock >= 0)
		close(lock);
	puts("ready");
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) == 1 && !told_to_end;
}

static FILE *open_log(const options *o, const load *l)
{
	FILE *out = fopen(o->out, "w");

	if (!out) {
		fprintf(stderr, "load: cannot write %s: %s\n", o->out, strerror(errno));
		exit(1);
	}
	fprintf(out, "gpu %s\niterations %u\n", l->gpu, l->form.turns);
	return out;
}

static int close_log(FILE *out, char mark, const uint64_t *sample, size_t count, bool right)
{
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%c %" PRIu64 "\n", mark, sample[i]);
	fputs("end\n", out);
	if (ferror(out) | fclose(out)) {
		fprintf(stderr, "load: cannot write the results\n");
		return 1;
	}
	return right ? 0 : EXIT_WRONG_RESULT;
}

/* ---- roles ---- */

/* A closed loop with two kernels in flight. Returns how many finished. */
static size_t repeat(load *l, uint64_t *done_ns)
{
	cudaEvent_t event[2];
	size_t n = 0;

	for (cudaEvent_t &e : event)
		CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	launch(l);
	CHECK(cudaEventRecord(event[0], l->stream));
	while (!told_to_end && n + 2 < SAMPLES_MAX) {
		launch(l);
		CHECK(cudaEventRecord(event[(n + 1) & 1], l->stream));
		CHECK(cudaEventSynchronize(event[n & 1]));
		done_ns[n++] = now_ns();
	}
	CHECK(cudaEventSynchronize(event[n & 1]));
	done_ns[n++] = now_ns();
	return n;
}

static int best_effort(const options *o, const shape *form)
{
	static load l;
	static uint64_t done_ns[SAMPLES_MAX];
	size_t finished = 0;
	FILE *out;
	bool right;
	int lock;

	open_gpu(&l, form, cudaDeviceScheduleAuto);
	lock = take_lock(o->lock);
	make_reference(&l);
	if (wait_for_go(lock) && strcmp(form->name, "idle"))
		finished = repeat(&l, done_ns);
	while (!told_to_end && !strcmp(form->name, "idle"))
		poll(NULL, 0, 50);
	if (!strcmp(form->name, "idle"))
		launch(&l); /* it must still be able to */
	out = open_log(o, &l);
	right = verify(&l, out);
	return close_log(out, 'd', done_ns, finished, right);
}

/* Sleeps, and spins at the end, so that the sleep's own delay is no part of the rhythm. */
static void wait_until(uint64_t at_ns)
{
	const uint64_t spin_ns = 60000;
	uint64_t wake_ns = at_ns - spin_ns;
	timespec t = {(time_t)(wake_ns / 1000000000u), (long)(wake_ns % 1000000000u)};

	if (now_ns() < wake_ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	while (now_ns() < at_ns && !told_to_end)
		;
}

static uint64_t jitter_ns(uint64_t *seed, uint64_t below_ns)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return below_ns ? *seed % below_ns : 0;
}

struct requests {
	uint64_t from_ns, to_ns, count, late;
	uint64_t latency_ns[SAMPLES_MAX];
};

/* Of an exponential with this mean. */
static uint64_t interval_ns(uint64_t *seed, uint64_t mean_ns)
{
	double u = (double)(jitter_ns(seed, 1ull << 53) + 1) / (double)(1ull << 53);

	return (uint64_t)(-std::log(u) * (double)mean_ns);
}

/* Open loop: request i is due at start + i periods + jitter, or at random with that mean, however
 * long the others took. */
static void serve(load *l, const options *o, requests *r)
{
	uint64_t period_ns = o->period_us * 1000, start_ns = now_ns() + 1000000, done_ns = start_ns;
	uint64_t seed = o->seed * 2 + 1, total = o->warmup + o->count, i;
	bool random = o->arrivals && !strcmp(o->arrivals, "poisson");
	uint64_t next_ns = start_ns;

	for (i = 0; i < total && !told_to_end; i++) {
		uint64_t due_ns = start_ns + i * period_ns + jitter_ns(&seed, period_ns / 10);
		uint64_t launch_ns;

		if (random)
			due_ns = next_ns += interval_ns(&seed, period_ns);
		wait_until(due_ns);
		launch_ns = now_ns();
		launch(l);
		CHECK(cudaStreamSynchronize(l->stream));
		done_ns = now_ns();
		if (i < o->warmup)
			continue;
		r->latency_ns[r->count++] = done_ns - (random ? due_ns : launch_ns);
		r->late += launch_ns - due_ns > 100000;
	}
	/* Whole periods, so that window / requests is the period. */
	wait_until(start_ns + i * period_ns);
	r->from_ns = start_ns + std::min(i, o->warmup) * period_ns;
	r->to_ns = std::max(done_ns, start_ns + i * period_ns);
}

static int latency_critical(const options *o)
{
	static load l;
	static requests r;
	double own_us;
	FILE *out;
	bool right;
	int lock;

	open_gpu(&l, &lc_shape, cudaDeviceScheduleSpin);
	lock = take_lock(o->lock);
	l.form.turns =
		o->iterations ? (unsigned)o->iterations : turns_for(&l, (double)o->kernel_us);
	kernel_us(&l, l.form.turns);
	own_us = kernel_us(&l, l.form.turns);
	make_reference(&l);
	if (wait_for_go(lock))
		serve(&l, o, &r);
	out = open_log(o, &l);
	fprintf(out, "kernel_ns %.0f\nlate %" PRIu64 "\nwindow %" PRIu64 " %" PRIu64 "\n",
	        own_us * 1e3, r.late, r.from_ns, r.to_ns);
	right = verify(&l, out);
	return close_log(out, 'l', r.latency_ns, r.count, right);
}

/* ---- command line ---- */

static int usage()
{
	fputs("usage: load be long|short|low|memory|idle --out FILE [--lock FILE]\n"
	      "       load lc --kernel-us N --period-us N --count N [--warmup N] [--seed N]\n"
	      "               [--iterations N] [--arrivals even|poisson] --out FILE [--lock FILE]\n",
	      stderr);
	return 2;
}

static bool set_option(options *o, const char *name, const char *value)
{
	const struct {
		const char *name;
		uint64_t *number;
		const char **text;
	} known[] = {
		{"--out", NULL, &o->out},
		{"--arrivals", NULL, &o->arrivals},
		{"--lock", NULL, &o->lock},
		{"--kernel-us", &o->kernel_us, NULL},
		{"--period-us", &o->period_us, NULL},
		{"--count", &o->count, NULL},
		{"--warmup", &o->warmup, NULL},
		{"--seed", &o->seed, NULL},
		{"--iterations", &o->iterations, NULL},
	};
	char *end = NULL;

	for (const auto &k : known) {
		if (strcmp(k.name, name))
			continue;
		if (k.text)
			*k.text = value;
		else
			*k.number = strtoull(value, &end, 10);
		return !end || (*value && !*end);
	}
	return false;
}

int main(int argc, char **argv)
{
	options o = {};
	struct sigaction term = {};
	int first = 2;

	o.role = argc > 1 ? argv[1] : "";
	if (!strcmp(o.role, "be") && argc > 2)
		o.kind = argv[first++];
	for (int i = first; i < argc; i += 2)
		if (i + 1 == argc || !set_option(&o, argv[i], argv[i + 1]))
			return usage();
	if (!o.out || o.warmup + o.count > SAMPLES_MAX)
		return usage();
	term.sa_handler = on_term; /* without SA_RESTART: it ends the wait for `go` */
	sigaction(SIGTERM, &term, NULL);
	if (o.kind) {
		for (const shape &form : be_shapes)
			if (!strcmp(form.name, o.kind))
				return best_effort(&o, &form);
		return usage();
	}
	if (strcmp(o.role, "lc") || !o.period_us || !o.count || !(o.kernel_us || o.iterations))
		return usage();
	return latency_critical(&o);
}
