/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/common/fuse_core.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Files that are open when the folder is unmounted get no release: the list keeps them reachable,
 * so that they are no leaks. */
static struct fuse_text *texts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct fuse_text *fuse_text_new(void)
{
	struct fuse_text *text = calloc(1, sizeof(*text));

	if (!text)
		return NULL;
	pthread_mutex_lock(&lock);
	text->next = texts;
	texts = text;
	pthread_mutex_unlock(&lock);
	return text;
}

void fuse_text_free(struct fuse_text *text)
{
	struct fuse_text **at = &texts;

	pthread_mutex_lock(&lock);
	while (*at != text)
		at = &(*at)->next;
	*at = text->next;
	pthread_mutex_unlock(&lock);
	free(text->data);
	free(text);
}

void fuse_text_reply(fuse_req_t req, const struct fuse_text *text, size_t size, off_t offset)
{
	size_t at = (size_t)offset;
	char *copy;

	if (!text->data || at >= text->length)
		size = 0;
	else if (size > text->length - at)
		size = text->length - at;
	copy = size ? malloc(size) : NULL; /* the file may be closed before the reply returns */
	if (copy)
		memcpy(copy, text->data + at, size);
	fuse_reply_buf(req, copy, copy ? size : 0);
	free(copy);
}

int fuse_core_control(const char *data, size_t size, int (*run)(char *line))
{
	char *copy = strndup(data, size), *rest = copy;
	int result = copy ? 0 : -ENOMEM;

	while (rest && !result)
		result = run(strsep(&rest, "\n"));
	free(copy);
	return result;
}

void fuse_core_reply_write(fuse_req_t req, int result, size_t size)
{
	if (result)
		fuse_reply_err(req, -result);
	else
		fuse_reply_write(req, size);
}

void fuse_core_ready(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	(void)conn;
	puts("ready");
	fflush(stdout);
}

struct fuse_session *fuse_core_session(char *program, const char *name,
				       const struct fuse_lowlevel_ops *operations)
{
	char options[80], *words[] = {program, "-o", options, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, words);
	struct fuse_session *session;

	snprintf(options, sizeof(options), "allow_other,default_permissions,fsname=%s", name);
	session = fuse_session_new(&args, operations, sizeof(*operations), NULL);
	fuse_opt_free_args(&args);
	return session;
}

int fuse_core_serve(struct fuse_session *session)
{
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	int result;

	if (!config)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(config, 512);
	fuse_loop_cfg_set_idle_threads(config, 64);
	result = fuse_session_loop_mt(session, config);
	fuse_loop_cfg_destroy(config);
	return result;
}

/* libfuse forgets a request that is under way when the mount goes, and with it open files. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
const char *__lsan_default_suppressions(
	void); /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
const char *__lsan_default_suppressions(
	void) /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
{
	return "leak:libfuse3";
}
#endif
#endif
