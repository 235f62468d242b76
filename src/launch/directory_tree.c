/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See directory_tree.h.
 */
#include "launch/directory_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/foreign_file.h"

#define TREE_DEPTH_MAX   16u /* directories of sessions are three deep */
#define COPY_CHUNK_BYTES (1u << 20)

static int open_directory(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* Takes the descriptor over. */
static DIR *open_directory_entries(int directory)
{
	DIR *entries = directory >= 0 ? fdopendir(directory) : NULL;

	if (!entries && directory >= 0)
		close(directory);
	return entries;
}

static struct dirent *read_next_directory_entry(DIR *entries)
{
	struct dirent *entry;

	do
		entry = readdir(entries);
	while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	return entry;
}

/* ---- copying ---- */

static int copy_file(int from, int to, const char *name)
{
	const struct foreign_open_policy how = {.directory = from,
						.trust_flags = FOREIGN_REFUSE_LINKS};
	struct stat status;
	int in = foreign_open_file(&how, name, &status), out, error = 0;
	ssize_t sent = 0;

	if (in < 0)
		return in;
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		     status.st_mode & 0777);
	if (out < 0)
		error = errno == EEXIST ? 0 : -errno;
	while (out >= 0 && !error && (sent = sendfile(out, in, NULL, COPY_CHUNK_BYTES)) != 0)
		error = sent < 0 ? -errno : 0;
	if (out >= 0 && close(out) && !error)
		error = -errno;
	close(in);
	if (error && out >= 0)
		unlinkat(to, name, 0);
	return error;
}

static int copy_tree(int from, int to, unsigned depth);

static int copy_directory(int from, int to, const char *name, unsigned depth)
{
	int inside = open_directory(from, name), made, error;

	if (inside < 0)
		return -errno;
	if (mkdirat(to, name, 0700) && errno != EEXIST) {
		error = -errno;
	} else {
		made = open_directory(to, name);
		error = made < 0 ? -errno : copy_tree(inside, made, depth + 1);
		if (made >= 0)
			close(made);
	}
	close(inside);
	return error;
}

/* Sockets and links are left behind. */
static int copy_tree(int from, int to, unsigned depth)
{
	DIR *entries =
		open_directory_entries(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;
	int error = entries ? 0 : -errno;

	while (!error && depth < TREE_DEPTH_MAX && (entry = read_next_directory_entry(entries))) {
		struct stat status;

		if (fstatat(from, entry->d_name, &status, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISDIR(status.st_mode))
			error = copy_directory(from, to, entry->d_name, depth);
		else if (S_ISREG(status.st_mode))
			error = copy_file(from, to, entry->d_name);
	}
	if (entries)
		closedir(entries);
	return error;
}

int directory_copy_tree(const char *from, const char *to, struct problem *problem)
{
	int source = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	int target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int error = source < 0 || target < 0 ? -errno : copy_tree(source, target, 0);

	if (source >= 0)
		close(source);
	if (target >= 0)
		close(target);
	return error ? problem_set(problem, error, "cannot copy '%s' to '%s': %s", from, to,
				   strerror(-error))
		     : 0;
}

/* ---- removing ---- */

static void remove_tree(int directory, unsigned depth)
{
	DIR *entries = open_directory_entries(directory);
	struct dirent *entry;

	while (entries && (entry = read_next_directory_entry(entries))) {
		if (!unlinkat(dirfd(entries), entry->d_name, 0) || errno != EISDIR ||
		    depth == TREE_DEPTH_MAX)
			continue;
		remove_tree(open_directory(dirfd(entries), entry->d_name), depth + 1);
		unlinkat(dirfd(entries), entry->d_name, AT_REMOVEDIR);
	}
	if (entries)
		closedir(entries);
}

void directory_remove_tree(const char *path)
{
	remove_tree(open_directory(AT_FDCWD, path), 0);
	rmdir(path);
}
