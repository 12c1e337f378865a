/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/usernames.h"

#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define NAMES_MAX 1024 /* a full table is emptied */

/* Never freed: the thread may be inside an NSS module when the daemon ends. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	bool started;
	unsigned n, known; /* those from `known` on were not looked up yet */
	struct {
		uid_t uid;
		char name[32];
	} user[NAMES_MAX];
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void ask(uid_t uid, char *out, size_t size)
{
	struct passwd entry, *found = NULL;
	char text[4096];

	if (!getpwuid_r(uid, &entry, text, sizeof text, &found) && found)
		gp_utf8_clean(out, size, found->pw_name);
}

static void *ask_all(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&names.lock);
	for (;;) {
		char name[sizeof names.user[0].name] = "";
		uid_t uid;

		while (names.known == names.n)
			pthread_cond_wait(&names.more, &names.lock);
		uid = names.user[names.known].uid;
		pthread_mutex_unlock(&names.lock);
		ask(uid, name, sizeof name);
		pthread_mutex_lock(&names.lock);
		memcpy(names.user[names.known++].name, name, sizeof name);
	}
	return NULL;
}

/* Starts the thread with all signals blocked, because the control thread handles them. */
static void start(void)
{
	pthread_attr_t detached;
	sigset_t all, old;
	pthread_t thread;

	names.started = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&detached);
	pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	pthread_create(&thread, &detached, ask_all, NULL); /* if this fails, uids are shown */
	pthread_attr_destroy(&detached);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

const char *gp_user_name(uid_t uid, char *out, size_t size)
{
	unsigned i = 0;

	snprintf(out, size, "%u", uid);
	pthread_mutex_lock(&names.lock);
	while (i < names.n && names.user[i].uid != uid)
		i++;
	/* A user with entries in /etc/subuid can fill the table. */
	if (i == NAMES_MAX && names.known == NAMES_MAX)
		i = names.n = names.known = 0;
	if (i < names.known && *names.user[i].name) {
		snprintf(out, size, "%s", names.user[i].name);
	} else if (i == names.n && i < NAMES_MAX) {
		names.user[names.n++].uid = uid;
		if (!names.started)
			start();
		pthread_cond_signal(&names.more);
	}
	pthread_mutex_unlock(&names.lock);
	return out;
}
