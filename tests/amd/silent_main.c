/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amd-silent MOUNTPOINT: a file system with one file, `page`, whose content never comes: who reads
 * it waits until this program is killed. Prints `ready`.
 */
#define FUSE_USE_VERSION 314
#include <errno.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int get_attributes(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	if (!strcmp(path, "/"))
		*st = (struct stat){.st_mode = S_IFDIR | 0555, .st_nlink = 2};
	else if (!strcmp(path, "/page"))
		*st = (struct stat){.st_mode = S_IFREG | 0444, .st_nlink = 1, .st_size = 4096};
	else
		return -ENOENT;
	return 0;
}

static int read_file(const char *path, char *data, size_t size, off_t offset,
                     struct fuse_file_info *fi)
{
	(void)path;
	(void)data;
	(void)size;
	(void)offset;
	(void)fi;
	for (;;)
		pause();
	return 0;
}

static void *begin(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	(void)config;
	puts("ready");
	fflush(stdout);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations operations = {
		.getattr = get_attributes, .read = read_file, .init = begin};
	char name[] = "amd-silent", foreground[] = "-f";
	char *words[] = {name, foreground, argc > 1 ? argv[1] : NULL, NULL};

	return argc == 2 ? fuse_main(3, words, &operations, NULL) : 2;
}
