/* SPDX-License-Identifier: Apache-2.0 */
#include "base/inquiry.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/accounts.h"
#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/process.h"

#define LOOK_NS         (5 * GP_NS_PER_MS)  /* between two looks at the helper's state */
#define SILENT_NS       (50 * GP_NS_PER_MS) /* in state D, */
#define SILENT_LOOKS    5u                  /* at so many looks: this thread may be suspended */
#define LATE_NS         (3 * GP_NS_PER_S) /* for a helper that is not in state D: it gets no CPU */
#define END_MS          20                /* for a helper that was killed */
#define TRIES           2                 /* with another helper, if the first is not to blame */

#define PAUSE_NS        GP_NS_PER_S /* first pause of a silent process, then twice as long, up to */
#define PAUSE_MAX_NS    (60 * GP_NS_PER_S)
#define BUDGET_NS       (100 * GP_NS_PER_MS) /* that an account may take in */
#define PERIOD_NS       (10 * GP_NS_PER_S)

#define SILENT_MAX      32u
#define DEBTORS_MAX     16u
#define OUT_MAX         16u /* helpers that do not end */
#define OUT_PER_ACCOUNT 2u
#define NO_ACCOUNT      ((uid_t)-1)

/* What a helper shares with its thread. */
struct board {
	gp_inquiry_work *work;
	int result;
	_Atomic bool began;
	_Alignas(max_align_t) char data[GP_INQUIRY_SIZE];
};

struct inquirer {
	pid_t owner; /* the process: a fork has its own helpers */
	bool has_helper;
	struct gp_helper helper;
	struct {
		struct gp_helper helper;
		uid_t account;
	} out[OUT_MAX];
	unsigned nout;
	struct {
		pid_t pid;
		uid_t account;
		uint64_t until_ns, pause_ns;
	} silent[SILENT_MAX];
	struct {
		uid_t account;
		uint64_t until_ns, spent_ns;
	} debtor[DEBTORS_MAX];
	uint64_t careful_until_ns; /* no process and no account is refused after this time */
	struct gp_accounts accounts;
};

static _Atomic bool use_helpers; /* a helper writes its own copy */
static pthread_key_t key;        /* each thread's struct inquirer */

/* In the helper. */

/* Each message has one byte. */
#define FILES 'f'
#define DONE  'd'

static bool send_files(int fd, const struct gp_inquiry_files *files)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof files->fd)] = {0};
	struct iovec one = {.iov_base = (char[]){FILES}, .iov_len = 1};
	size_t size = files->n * sizeof *files->fd;
	struct msghdr message = {.msg_iov = &one,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = CMSG_SPACE(size)};
	struct cmsghdr *head = (struct cmsghdr *)control;

	*head = (struct cmsghdr){
		.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(size)};
	memcpy(CMSG_DATA(head), files->fd, size);
	return sendmsg(fd, &message, MSG_NOSIGNAL) == 1;
}

static void close_files(const struct gp_inquiry_files *files)
{
	for (unsigned i = 0; i < files->n; i++)
		close(files->fd[i]);
}

static void serve(int fd, void *shared)
{
	struct board *board = shared;
	char byte;

	while (recv(fd, &byte, 1, 0) == 1) {
		struct gp_inquiry_files files = {0};

		atomic_store(&board->began, true);
		board->result = board->work(board->data, &files);
		if (files.n && !send_files(fd, &files))
			return;
		close_files(&files); /* no file outlives the inquiry here */
		byte = DONE;
		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			return;
	}
}

/* In this process. */

static void free_ended(struct inquirer *q)
{
	for (unsigned i = q->nout; i-- > 0;)
		if (gp_helper_reap(&q->out[i].helper, false))
			q->out[i] = q->out[--q->nout];
}

/* SIGKILL ends a helper at once, unless its wait cannot be killed. Its end closes its files, and
 * the end of its socket those that are on their way. */
static void end_helper(struct inquirer *q, uid_t account)
{
	struct pollfd p = {.fd = q->helper.pidfd, .events = POLLIN};

	gp_helper_kill(&q->helper);
	q->has_helper = false;
	poll(&p, 1, END_MS);
	if (gp_helper_reap(&q->helper, false))
		return;
	q->out[q->nout].account = account;
	q->out[q->nout++].helper = q->helper;
}

/* At the end of the thread. */
static void free_inquirer(void *inquirer)
{
	struct inquirer *q = inquirer;

	if (q->owner == getpid()) {
		free_ended(q);
		if (q->has_helper && q->nout < OUT_MAX)
			end_helper(q, NO_ACCOUNT);
		for (unsigned i = 0; i < q->nout; i++)
			close(q->out[i].helper.pidfd);
	}
	gp_accounts_free(&q->accounts);
	free(q);
}

static void make_key(void)
{
	use_helpers = !pthread_key_create(&key, free_inquirer);
}

void gp_inquiry_use_helpers(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_key);
}

void gp_inquiry_use_none(void)
{
	use_helpers = false;
}

/* NULL: this thread does the work itself. */
static struct inquirer *find_inquirer(pid_t self)
{
	struct inquirer *q = pthread_getspecific(key);

	if (!q) {
		q = calloc(1, sizeof *q);
		if (!q || pthread_setspecific(key, q)) {
			free(q);
			return NULL;
		}
	} else if (q->owner == self) {
		return q;
	} else { /* of the process that forked this one */
		gp_accounts_free(&q->accounts);
	}
	*q = (struct inquirer){.owner = self};
	gp_accounts_init(&q->accounts, GP_SUBUID_PATH);
	return q;
}

/* The real uid counts: a program with the set-user-ID bit has been started by it. */
static uid_t account_of(struct inquirer *q, pid_t pid)
{
	uid_t uid[3];

	return gp_process_uids(pid, uid) ? gp_account_of(&q->accounts, uid[0]) : NO_ACCOUNT;
}

static bool is_refused_account(const struct inquirer *q, uid_t account, uint64_t now_ns)
{
	unsigned out = 0;

	for (unsigned i = 0; i < q->nout; i++)
		out += q->out[i].account == account;
	if (out >= OUT_PER_ACCOUNT)
		return true;
	for (unsigned i = 0; i < DEBTORS_MAX; i++)
		if (q->debtor[i].account == account && q->debtor[i].until_ns > now_ns)
			return q->debtor[i].spent_ns >= BUDGET_NS;
	return false;
}

static bool is_refused(struct inquirer *q, pid_t pid)
{
	uint64_t now_ns = gp_monotonic_ns();
	uid_t account;

	if (now_ns >= q->careful_until_ns && !q->nout)
		return false;
	free_ended(q);
	account = account_of(q, pid);
	if (account == NO_ACCOUNT)
		return false; /* it has ended */
	for (unsigned i = 0; i < SILENT_MAX; i++)
		if (q->silent[i].pid == pid && q->silent[i].account == account &&
		    q->silent[i].until_ns > now_ns)
			return true;
	return is_refused_account(q, account, now_ns);
}

static void be_careful(struct inquirer *q, uint64_t until_ns)
{
	if (until_ns > q->careful_until_ns)
		q->careful_until_ns = until_ns;
}

/* Replaces the entry that expires first. */
static void note_silent(struct inquirer *q, pid_t pid, uid_t account, uint64_t now_ns)
{
	unsigned at = 0;

	for (unsigned i = 0; i < SILENT_MAX && q->silent[at].pid != pid; i++)
		if (q->silent[i].pid == pid || q->silent[i].until_ns < q->silent[at].until_ns)
			at = i;
	if (q->silent[at].pid != pid || q->silent[at].account != account)
		q->silent[at].pause_ns = PAUSE_NS / 2;
	q->silent[at].pid = pid;
	q->silent[at].account = account;
	if (q->silent[at].pause_ns < PAUSE_MAX_NS)
		q->silent[at].pause_ns *= 2;
	q->silent[at].until_ns = now_ns + q->silent[at].pause_ns;
	be_careful(q, q->silent[at].until_ns);
}

static void note_answer(struct inquirer *q, pid_t pid)
{
	for (unsigned i = 0; i < SILENT_MAX && q->careful_until_ns; i++)
		if (q->silent[i].pid == pid)
			q->silent[i].pid = 0;
}

/* The log names a process of the account once in a period. */
static void note_debt(struct inquirer *q, pid_t pid, uid_t account, uint64_t spent_ns,
		      uint64_t now_ns)
{
	unsigned at = 0;

	for (unsigned i = 0; i < DEBTORS_MAX; i++) {
		if (q->debtor[i].account == account && q->debtor[i].until_ns > now_ns) {
			q->debtor[i].spent_ns += spent_ns;
			return;
		}
		if (q->debtor[i].until_ns < q->debtor[at].until_ns)
			at = i;
	}
	q->debtor[at].account = account;
	q->debtor[at].until_ns = now_ns + PERIOD_NS;
	q->debtor[at].spent_ns = spent_ns;
	be_careful(q, q->debtor[at].until_ns);
	gp_log(GP_LOG_WARN, "process.silent",
	       "pid=%d account=%d; the kernel does not answer questions about it, probably "
	       "because a file system delays its execve; after %u ms in %u s no process of this "
	       "account is asked for the rest",
	       pid, (int)account, (unsigned)(BUDGET_NS / GP_NS_PER_MS),
	       (unsigned)(PERIOD_NS / GP_NS_PER_S));
}

static void blame(struct inquirer *q, pid_t pid, uint64_t since_ns)
{
	uint64_t now_ns = gp_monotonic_ns();
	uid_t account = account_of(q, pid);

	end_helper(q, account);
	if (account == NO_ACCOUNT)
		return;
	note_silent(q, pid, account, now_ns);
	note_debt(q, pid, account, now_ns - since_ns, now_ns);
}

/* Reads the file that never waits. */
static bool is_blocked(pid_t helper)
{
	char path[32], text[256];
	const char *state;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/status", helper);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof text - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	state = strstr(text, "\nState:\t");
	return state && state[strlen("\nState:\t")] == 'D';
}

/* False: it is in the kernel, or gets no CPU. */
static bool wait_for_answer(const struct inquirer *q, uint64_t asked_ns)
{
	struct pollfd p = {.fd = q->helper.fd, .events = POLLIN};
	struct timespec look = gp_timespec(LOOK_NS);
	uint64_t blocked_ns = 0;
	unsigned looks = 0;

	while (ppoll(&p, 1, &look, NULL) <= 0) {
		uint64_t now_ns = gp_monotonic_ns();

		if (!is_blocked(q->helper.pid))
			looks = 0;
		else if (!looks++)
			blocked_ns = now_ns;
		if (looks >= SILENT_LOOKS && now_ns - blocked_ns >= SILENT_NS)
			return false;
		if (now_ns - asked_ns >= LATE_NS)
			return false;
	}
	return true;
}

/* Returns the kind of the message, 0: the helper has ended. */
static char receive(const struct inquirer *q, struct gp_inquiry_files *files)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof files->fd)];
	char byte;
	struct iovec one = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &one,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof control};
	const struct cmsghdr *head;

	if (recvmsg(q->helper.fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return 0;
	head = CMSG_FIRSTHDR(&message);
	if (head) {
		files->n = (unsigned)((head->cmsg_len - CMSG_LEN(0)) / sizeof *files->fd);
		memcpy(files->fd, CMSG_DATA(head), files->n * sizeof *files->fd);
	}
	return byte;
}

/* 1: answered, 0: not answered, and the process is not to blame, -ETIMEDOUT: it is. */
static int ask(struct inquirer *q, pid_t pid, struct gp_inquiry_files *files)
{
	struct board *board = q->helper.shared;
	uint64_t asked_ns = gp_monotonic_ns();
	bool is_silent = false;
	char message = FILES;

	atomic_store(&board->began, false);
	if (send(q->helper.fd, &message, 1, MSG_NOSIGNAL) != 1)
		message = 0;
	while (message == FILES && !is_silent)
		if (wait_for_answer(q, asked_ns))
			message = receive(q, files);
		else
			is_silent = true;
	if (message == DONE)
		return 1;
	is_silent &= atomic_load(&board->began) && is_blocked(q->helper.pid);
	if (is_silent)
		blame(q, pid, asked_ns);
	else
		end_helper(q, NO_ACCOUNT);
	close_files(files);
	files->n = 0;
	return is_silent ? -ETIMEDOUT : 0;
}

static int start_helper(struct inquirer *q)
{
	if (q->has_helper)
		return 0;
	free_ended(q);
	if (q->nout == OUT_MAX)
		return -ETIMEDOUT;
	q->has_helper = !gp_helper_start(&q->helper, GP_HELPER_HIDDEN, sizeof(struct board), serve);
	return q->has_helper ? 0 : -EAGAIN;
}

/* Only root can keep a process of root in execve. A program with the set-user-ID bit has the real
 * uid of the user who started it. A process that does not exist is in no execve. */
static bool answers_surely(pid_t pid)
{
	uid_t uid[3];

	if (gp_process_uids(pid, uid))
		return !uid[0] && !uid[1] && !uid[2];
	return kill(pid, 0) && errno == ESRCH;
}

/* The answer of the helper. */
static int take_answer(struct inquirer *q, pid_t pid, void *data, size_t size)
{
	const struct board *board = q->helper.shared;

	memcpy(data, board->data, size);
	note_answer(q, pid);
	return board->result;
}

static int ask_helper(struct inquirer *q, pid_t pid, gp_inquiry_work *work, void *data, size_t size,
		      struct gp_inquiry_files *files)
{
	int r = 0;

	for (int i = 0; i < TRIES && !r; i++) {
		struct board *board;

		r = start_helper(q);
		if (r == -EAGAIN)
			return work(data, files);
		if (r)
			return r;
		board = q->helper.shared;
		board->work = work;
		memcpy(board->data, data, size);
		r = ask(q, pid, files);
	}
	return r == 1 ? take_answer(q, pid, data, size) : -ETIMEDOUT;
}

int gp_inquire(pid_t pid, gp_inquiry_work *work, void *data, size_t size,
	       struct gp_inquiry_files *files)
{
	struct gp_inquiry_files none = {0};
	struct inquirer *q = NULL;
	pid_t self = getpid();
	int r;

	if (use_helpers && pid != self && !answers_surely(pid))
		q = find_inquirer(self);
	files = files ? files : &none;
	if (!q)
		return work(data, files);
	if (is_refused(q, pid))
		return -ETIMEDOUT;
	r = ask_helper(q, pid, work, data, size, files);
	close_files(&none);
	return r;
}

void gp_inquiry_blame(pid_t pid)
{
	struct inquirer *q = use_helpers ? pthread_getspecific(key) : NULL;

	if (q && q->owner == getpid() && q->has_helper)
		blame(q, pid, gp_monotonic_ns());
}
