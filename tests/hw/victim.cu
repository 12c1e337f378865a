// SPDX-License-Identifier: Apache-2.0
/*
 * A CUDA program for the tests on real hardware; it knows nothing of gpreempt.
 *
 *     victim work [GIGABYTES]   the same kernel again and again, every result compared with the
 *                               first; holds so much memory besides
 *     victim launch             empty kernels as fast as they can be launched
 *
 * Prints "ready", then a line "at SECONDS done COUNT" every 50 ms, and at SIGTERM
 * "done COUNT wrong COUNT". Exit status 0, 1 after a CUDA error, 3 when a result was wrong.
 */
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <time.h>

#include <cuda_runtime.h>

#define CHECK(call)                                                                             \
	do {                                                                                    \
		cudaError_t error_ = (call);                                                    \
		if (error_ != cudaSuccess) {                                                    \
			fprintf(stderr, "victim: %s: %s\n", #call, cudaGetErrorString(error_)); \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

static volatile sig_atomic_t told_to_end;

static void on_term(int)
{
	told_to_end = 1;
}

static double now()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A chain that any lost or repeated step changes. */
__global__ void work(uint64_t *sum, int steps)
{
	uint64_t x = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;

	for (int i = 0; i < steps; i++)
		x = (x ^ (x >> 29)) * 0x9e3779b97f4a7c15ull + 1;
	atomicAdd((unsigned long long *)sum, (unsigned long long)x);
}

__global__ void nothing()
{
}

static void tell(double began, uint64_t done)
{
	static double last;
	double at = now();

	if (at - last < 0.05)
		return;
	last = at;
	printf("at %.6f done %llu\n", at - began, (unsigned long long)done);
	fflush(stdout);
}

static int run_work(double gigabytes)
{
	const int steps = 40000, blocks = 132 * 2, threads = 1024;
	uint64_t *sum, first = 0, done = 0, wrong = 0, result;
	double began;
	void *memory;

	CHECK(cudaMalloc(&sum, sizeof *sum));
	if (gigabytes > 0) {
		CHECK(cudaMalloc(&memory, (size_t)(gigabytes * 1e9)));
		CHECK(cudaMemset(memory, 1, (size_t)(gigabytes * 1e9)));
	}
	CHECK(cudaDeviceSynchronize());
	puts("ready");
	fflush(stdout);
	began = now();
	while (!told_to_end) {
		CHECK(cudaMemset(sum, 0, sizeof *sum));
		work<<<blocks, threads>>>(sum, steps);
		CHECK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
		if (!done++)
			first = result;
		wrong += result != first;
		tell(began, done);
	}
	printf("done %llu wrong %llu\n", (unsigned long long)done, (unsigned long long)wrong);
	return wrong ? 3 : 0;
}

static int run_launch()
{
	uint64_t done = 0;
	double began;

	nothing<<<1, 1>>>();
	CHECK(cudaDeviceSynchronize());
	puts("ready");
	fflush(stdout);
	began = now();
	while (!told_to_end) {
		for (int i = 0; i < 64; i++)
			nothing<<<1, 1>>>();
		CHECK(cudaDeviceSynchronize());
		done += 64;
		tell(began, done);
	}
	printf("done %llu wrong 0\n", (unsigned long long)done);
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGTERM, on_term);
	if (argc > 1 && !strcmp(argv[1], "work"))
		return run_work(argc > 2 ? atof(argv[2]) : 0);
	if (argc > 1 && !strcmp(argv[1], "launch"))
		return run_launch();
	fputs("usage: victim work [GIGABYTES] | victim launch\n", stderr);
	return 2;
}
