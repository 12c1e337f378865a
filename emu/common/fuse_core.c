/* SPDX-License-Identifier: Apache-2.0 */
#include "emu/common/fuse_core.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ATTRIBUTES_S 60 /* the kernel asks again after this time */

static const struct fuse_files *files;

/* The content of a file as it was when the file was opened. */
struct fuse_text {
	char *data;
	size_t length;
	struct fuse_text *next; /* of those that are still open */
};

/* Files that are open when the folder is unmounted get no release: the list keeps them reachable,
 * so that they are no leaks. */
static struct fuse_text *texts;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct fuse_text *text_new(void)
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

static void text_free(struct fuse_text *text)
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

static void text_reply(fuse_req_t req, const struct fuse_text *text, size_t size, off_t offset)
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

/* Runs each line until one fails. */
static int run_lines(const char *data, size_t size)
{
	char *copy = strndup(data, size), *rest = copy;
	int result = copy ? 0 : -ENOMEM;

	while (rest && !result)
		result = files->control(strsep(&rest, "\n"));
	free(copy);
	return result;
}

static struct stat stat_of(fuse_ino_t ino)
{
	return (struct stat){.st_ino = ino, .st_mode = files->mode(ino), .st_nlink = 1};
}

static bool find_child(fuse_ino_t folder, const char *name, fuse_ino_t *child)
{
	bool found = false;
	char other[64];

	files->lock();
	for (uint32_t i = 0; !found && files->child(folder, i, child, other); i++)
		found = !strcmp(other, name);
	files->unlock();
	return found;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {.attr_timeout = ATTRIBUTES_S};

	if (!find_child(parent, name, &entry.ino)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	entry.attr = stat_of(entry.ino);
	entry.entry_timeout = files->keep_s(entry.ino);
	fuse_reply_entry(req, &entry);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat st = stat_of(ino);

	(void)fi;
	fuse_reply_attr(req, &st, ATTRIBUTES_S);
}

/* For O_TRUNC, as a shell opens files. */
static void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
		       struct fuse_file_info *fi)
{
	(void)attr;
	(void)to_set;
	on_getattr(req, ino, fi);
}

static void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	char buffer[4096], name[64];
	size_t used = 0;
	fuse_ino_t child;

	(void)fi;
	if (size > sizeof(buffer))
		size = sizeof(buffer);
	files->lock();
	for (uint32_t i = (uint32_t)offset; files->child(ino, i, &child, name); i++) {
		struct stat st = stat_of(child);
		size_t need = fuse_add_direntry(req, buffer + used, size - used, name, &st, i + 1);

		if (need > size - used)
			break;
		used += need;
	}
	files->unlock();
	fuse_reply_buf(req, buffer, used);
}

static int open_text(fuse_ino_t ino, void **handle)
{
	struct fuse_text *text = text_new();
	FILE *out = text ? open_memstream(&text->data, &text->length) : NULL;
	bool there = false;

	if (out) {
		files->lock();
		there = files->print(ino, out);
		files->unlock();
		fclose(out);
	}
	if (!there) {
		if (text)
			text_free(text);
		return out ? -ENOENT : -ENOMEM;
	}
	*handle = text;
	return 0;
}

static int open_handle(fuse_ino_t ino, pid_t thread, void **handle)
{
	*handle = NULL;
	switch (files->kind(ino)) {
	case FUSE_DEVICE: return files->open_device(thread, handle);
	case FUSE_TEXT: return open_text(ino, handle);
	case FUSE_STREAM: return files->open_stream(ino, thread, handle);
	default: return 0;
	}
}

static void close_handle(fuse_ino_t ino, void *handle)
{
	enum fuse_kind kind = files->kind(ino);

	if (handle && kind == FUSE_DEVICE)
		files->close_device(handle);
	else if (handle && kind == FUSE_STREAM)
		files->close_stream(handle);
	else if (handle)
		text_free(handle);
}

static void *handle_of(const struct fuse_file_info *fi)
{
	return (void *)(uintptr_t)fi->fh;
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	void *handle;
	int error = open_handle(ino, fuse_req_ctx(req)->pid, &handle);

	if (error) {
		fuse_reply_err(req, -error);
		return;
	}
	fi->direct_io = 1;
	fi->fh = (uint64_t)(uintptr_t)handle;
	if (fuse_reply_open(req, fi) == -ENOENT)
		close_handle(ino, handle); /* the opener was interrupted: no release will come */
}

static void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	close_handle(ino, handle_of(fi));
	fuse_reply_err(req, 0);
}

static void stream_reply(fuse_req_t req, void *handle, size_t size)
{
	char data[4096];
	int n = files->read_stream(handle, data, size < sizeof(data) ? size : sizeof(data));

	if (n < 0)
		fuse_reply_err(req, -n);
	else
		fuse_reply_buf(req, data, (size_t)n);
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	if (files->kind(ino) == FUSE_TEXT)
		text_reply(req, handle_of(fi), size, offset);
	else if (files->kind(ino) == FUSE_STREAM)
		stream_reply(req, handle_of(fi), size);
	else
		fuse_reply_err(req, EINVAL);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
		     struct fuse_file_info *fi)
{
	enum fuse_kind kind = files->kind(ino);
	int result = -EINVAL;

	if (kind == FUSE_CONTROL)
		result = run_lines(data, size);
	else if (kind == FUSE_DEVICE && files->write_device)
		result = files->write_device(req, handle_of(fi), size, offset);
	else if (kind == FUSE_STREAM)
		result = files->write_stream(handle_of(fi), data, size);
	if (result < 0)
		fuse_reply_err(req, -result);
	else if (result)
		fuse_reply_write(req, (size_t)result);
	else
		fuse_reply_write(req, size);
}

static void on_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
		     struct fuse_file_info *fi, unsigned int flags, const void *in, size_t in_size,
		     size_t out_size)
{
	(void)flags;
	if (files->kind(ino) == FUSE_DEVICE)
		files->ioctl(req, handle_of(fi), cmd, arg, in, in_size, out_size);
	else
		fuse_reply_err(req, ENOTTY);
}

static void on_init(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	(void)conn;
	puts("ready");
	fflush(stdout);
}

struct fuse_session *fuse_core_folder(char *program, const char *name,
				      const struct fuse_files *folder)
{
	static const struct fuse_lowlevel_ops operations = {
		.init = on_init,
		.lookup = on_lookup,
		.getattr = on_getattr,
		.setattr = on_setattr,
		.readdir = on_readdir,
		.open = on_open,
		.release = on_release,
		.read = on_read,
		.write = on_write,
		.ioctl = on_ioctl,
	};

	files = folder;
	return fuse_core_session(program, name, &operations);
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
