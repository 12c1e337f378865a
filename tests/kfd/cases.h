/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims about amdkfd's interface for debuggers, each with the answer we expect. The same table
 * runs on the real driver in a virtual machine, which has no GPU, and on the emulator: what both
 * answer must be the same.
 *
 * Each case runs in a process of its own, and says word by word what it saw. Its peers are further
 * processes, which do what they are told; `action` is what a case can do itself, in a thread of its
 * own, or let a peer do.
 */
#ifndef TESTS_KFD_CASES_H
#define TESTS_KFD_CASES_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/amd/kfd_abi.h"

enum {
	NEEDS_GPU = 1,      /* queues: the emulator only */
	NEEDS_NO_GPU = 2,   /* the answer differs if there is a GPU */
	NEEDS_NEW_RULE = 4, /* a debugger needs no ptrace link after ENABLE: since 6.12.103 */
	NEEDS_OLD_RULE = 8, /* every operation but DISABLE needs the link */
	NEEDS_NO_HWS = 16,  /* the driver was loaded with sched_policy=2 */
	NEEDS_SYSFS = 32,
	NEEDS_MES = 64,  /* the scheduler of gfx11, which takes off single queues */
	NEEDS_HWS = 128, /* the other one */
	NEEDS_TWO_GPU = 256,
	NEEDS_ONE_SLOT = 512, /* one debugged process at a time: gfx9 of before the MI200 */
};

struct peer {
	pid_t pid;
	int socket;
};

struct kfd_case {
	const char *name;
	const char *info; /* the section of the facts that claims it */
	unsigned needs;
	const char *expected;
	struct peer (*start)(void); /* the peer that the case begins with */
	void (*run)(struct peer p);
	const char *file;
	int position; /* in its file */
	struct kfd_case *next;
};

/* Cases register themselves. They run by file, and in the order of the file. */
void kfd_case_add(struct kfd_case *c);

#define KFD_JOIN_(a, b) a##b
#define KFD_JOIN(a, b)  KFD_JOIN_(a, b)
#define KFD_CASE_AT(number, title, function, begin, ...)                                \
	__attribute__((constructor)) static void KFD_JOIN(kfd_register_, number)(void)  \
	{                                                                               \
		static struct kfd_case case_ = {#title,   __VA_ARGS__, begin, function, \
						__FILE__, number,      NULL};           \
		kfd_case_add(&case_);                                                   \
	}

/* A function as another case: under other needs it expects another answer. */
#define KFD_CASE_AGAIN(title, function, begin, ...) \
	KFD_CASE_AT(__COUNTER__, title, function, peer_start_##begin, __VA_ARGS__)

#define KFD_CASE_BODY(function, begin, name, ...)              \
	static void function(struct peer name);                \
	KFD_CASE_AGAIN(function, function, begin, __VA_ARGS__) \
	static void function(__attribute__((unused)) struct peer name)

/* Defines a case: the section of the facts, what it needs, and the answer that is expected. */
#define KFD_CASE(function, ...) KFD_CASE_BODY(function, none, none_, __VA_ARGS__)

/* The same with a peer `p`, as peer_start_BEGIN() starts it. */
#define PEER_CASE(function, begin, ...) KFD_CASE_BODY(function, begin, p, __VA_ARGS__)

extern const char *kfd_device;
extern const char *kfd_sysfs;

/* What a case says. */

void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *answer(long rc); /* "EPERM", "0", "3" */
void say_answer(long rc);
/* The answers of up to 6 calls, which are made in this order. */
#define SAY_1(a)                        say_answer(a)
#define SAY_2(a, ...)                   (say_answer(a), SAY_1(__VA_ARGS__))
#define SAY_3(a, ...)                   (say_answer(a), SAY_2(__VA_ARGS__))
#define SAY_4(a, ...)                   (say_answer(a), SAY_3(__VA_ARGS__))
#define SAY_5(a, ...)                   (say_answer(a), SAY_4(__VA_ARGS__))
#define SAY_6(a, ...)                   (say_answer(a), SAY_5(__VA_ARGS__))
#define SAY_N(a, b, c, d, e, f, n, ...) SAY_##n
#define SAY_ANSWERS(...)                SAY_N(__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)(__VA_ARGS__)
/* Ends the case: it cannot be tried here. */
void cannot(const char *reason) __attribute__((noreturn));
/* Ends the case, which fails: what it needed did not work. */
void broken(const char *what, long rc) __attribute__((noreturn));
/* Ends it unless rc is 0 or more. */
long must(const char *what, long rc);

/* Actions: 0 or more, or -errno. */

typedef long action(long arg);

int kfd_fd(void); /* this process's own; opened when first asked for */
long kfd_ioctl(unsigned long number, void *arg);
long trap(struct kfd_dbg_trap *args);
long trap_op(pid_t pid, uint32_t op); /* with nothing but zeros */
long enable_with(pid_t pid, uint64_t exceptions, int fd, void *info, uint32_t *size);
int notify_fd(void);  /* the writing end of this process's pipe for events */
long dots_seen(void); /* takes and counts what was written to it */
/* Waits at most `ms` for the first dot. -EPIPE: the pipe has no writer. */
long wait_for_dots(int ms);
long send_event(pid_t pid, uint64_t exceptions);
long query_event(pid_t pid, uint64_t clear, uint64_t *raised);
long suspend(pid_t pid, uint32_t *ids, uint32_t n);
long resume(pid_t pid, uint32_t *ids, uint32_t n);
void *bad_pointer(void);
void *read_only_copy(const void *data, size_t size);

long open_kfd(long unused);
long close_kfd(long unused);
long get_version(long unused);
long set_runtime(long mode); /* KFD_RUNTIME_ENABLE_MODE_*: 0 is disable */
long seize(long pid);
long attach(long pid); /* PTRACE_ATTACH, and waits for the stop */
long detach(long pid); /* stops it first */
long enable(long pid); /* events on notify_fd(), EC_PROCESS_RUNTIME and queues coming and going */
long disable(long pid);
long count_queues(long pid); /* the cheapest operation that needs a session */
long seize_and_enable(long pid);
long start_thread(long unused); /* one that sleeps: its TID */
long exit_leader(long unused);  /* no answer: the other threads go on */
long exec_self(long unused);    /* the program again: answers when it is back */
long exit_normally(long unused);
long become_user(long uid);
long catch_signal(long number); /* with a handler, so that it interrupts */

/* Peers, threads. */

#define RUNTIME_R_DEBUG 0x1234567800ull /* what set_runtime() gives */
#define NOBODY          65534           /* the user `nobody` */

struct peer peer_start_none(void); /* no process */
struct peer peer_start_plain(void);
struct peer peer_start_open(void);     /* has /dev/kfd open */
struct peer peer_start_seized(void);   /* and is traced by the caller */
struct peer peer_start_debugged(void); /* and debugged */
/* Runtime enabled before the debugger came, so that it can be suspended. */
struct peer peer_start_ready(void);

long peer_call(const struct peer *p, action *act, long arg);
void peer_ask(const struct peer *p, action *act, long arg);
bool peer_is_blocked(const struct peer *p); /* asked, and has no answer after a while */
long peer_answer(const struct peer *p);
void peer_kill(const struct peer *p); /* and waits until it is gone */
int peer_serve(int socket);           /* what the other side of it runs */

long in_thread(action *act, long arg); /* one that ends at once */
/* Repeats act(arg) while it answers `while_rc`, a few seconds at most: its answer in the end. For
 * what happens soon, but not at once, on the emulator. */
long repeat_while(long while_rc, action *act, long arg);

#endif
