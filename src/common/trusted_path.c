/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See trusted_path.h. A path is resolved first: where every directory of the result is trusted,
 * nobody else can change what it leads to later, whatever links led there.
 *
 * Others may write to a directory with the sticky bit (/tmp): they can add to it, but neither
 * remove nor rename what is ours. A directory of the effective user's own group may be written by
 * the group: that is how distributions with a group for each user set up home directories.
 */
#include "common/trusted_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYMBOLIC_LINKS_MAX 40u /* as the kernel has it (path_resolution(7)) */

/* In a user namespace that does not know all users, those that it does not know, root outside among
 * them, are shown as one (user_namespaces(7)). Nobody inside can become one of them. */
static bool is_owner_outside_namespace(uid_t owner)
{
	unsigned long first = 0, outside = 0, count = 0, overflow = 65534;
	FILE *map = fopen("/proc/self/uid_map", "re"),
	     *shown = fopen("/proc/sys/kernel/overflowuid", "re");
	bool limited = map && fscanf(map, "%lu %lu %lu", &first, &outside, &count) == 3 &&
		       count < UINT32_MAX;

	if (shown && fscanf(shown, "%lu", &overflow) != 1)
		overflow = 65534;
	if (map)
		fclose(map);
	if (shown)
		fclose(shown);
	return limited && owner == overflow;
}

bool is_trusted_owner(uid_t owner)
{
	return owner == 0 || owner == geteuid() || is_owner_outside_namespace(owner);
}

bool is_trusted_file_status(const struct stat *status)
{
	return is_trusted_owner(status->st_uid) && !(status->st_mode & (S_IWGRP | S_IWOTH));
}

static bool is_writable_by_others(const struct stat *status)
{
	if (status->st_mode & S_ISVTX)
		return false;
	return status->st_mode & S_IWOTH ||
	       (status->st_mode & S_IWGRP && status->st_gid != getegid() && status->st_gid != 0);
}

static int check_directory_trust(const char *path, struct untrusted_path_part_info *doubt)
{
	struct stat status;

	if (lstat(path, &status))
		return -errno;
	if (is_trusted_owner(status.st_uid) && !is_writable_by_others(&status))
		return 0;
	if (doubt) {
		snprintf(doubt->path, sizeof(doubt->path), "%s", path);
		doubt->owner = status.st_uid;
		doubt->writable = is_trusted_owner(status.st_uid);
	}
	return -EPERM;
}

int trusted_path_resolve_and_check(const char *path, char *resolved,
				   struct untrusted_path_part_info *doubt)
{
	int error;

	if (!realpath(path, resolved))
		return -errno;
	error = check_directory_trust("/", doubt);
	for (char *slash = resolved; !error && *slash;) {
		char *end = strchr(slash + 1, '/');

		if (end)
			*end = '\0';
		error = check_directory_trust(resolved, doubt);
		if (end)
			*end = '/';
		slash = end ? end : slash + strlen(slash);
	}
	return error;
}

int trusted_path_make_directories(const char *path, mode_t mode, char *resolved,
				  struct untrusted_path_part_info *doubt)
{
	char partial[PATH_MAX], base[PATH_MAX];
	size_t length = strlen(path);
	int error = trusted_path_resolve_and_check(path, resolved, doubt);

	if (error != -ENOENT || !length || length >= sizeof(partial))
		return error;
	memcpy(partial, path, length + 1);
	for (char *slash = strchr(partial + 1, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		/* Nothing is made inside of what others can exchange: that is an error before. */
		error = trusted_path_resolve_and_check(partial, base, doubt);
		if (error == -ENOENT)
			error = mkdir(partial, mode)
					? -errno
					: trusted_path_resolve_and_check(partial, base, doubt);
		if (error || !slash)
			break;
		*slash = '/';
	}
	return error ? error : trusted_path_resolve_and_check(path, resolved, doubt);
}

/* ---- step by step ---- */

struct path_walk_state {
	struct opened_directory_with_trust *at;
	mode_t new_directory_mode;
	unsigned followed_link_count;
	char remaining_path[PATH_MAX]; /* what is still to go */
};

static void record_untrusted_directory(struct opened_directory_with_trust *at, const char *path,
				       const struct stat *status)
{
	if (!at->trusted)
		return;
	at->trusted = false;
	snprintf(at->doubt.path, sizeof(at->doubt.path), "%s", path);
	at->doubt.owner = status->st_uid;
	at->doubt.writable = is_trusted_owner(status->st_uid);
}

/* `descriptor` is a directory, whose name is put behind the path. */
static int walk_enter_directory(struct path_walk_state *walk, int descriptor, const char *name,
				const struct stat *status)
{
	struct opened_directory_with_trust *at = walk->at;
	size_t length = strlen(at->path);

	if (at->descriptor >= 0)
		close(at->descriptor);
	at->descriptor = descriptor;
	if (!strcmp(name, "..")) {
		char *slash = strrchr(at->path, '/');

		*(slash == at->path ? slash + 1 : slash) = '\0';
	} else if (length + strlen(name) + 2 > sizeof(at->path)) {
		return -ENAMETOOLONG;
	} else {
		snprintf(at->path + length, sizeof(at->path) - length, "%s%s",
			 length > 1 ? "/" : "", name);
	}
	if (!is_trusted_owner(status->st_uid) || is_writable_by_others(status))
		record_untrusted_directory(at, at->path, status);
	return 0;
}

static int walk_restart_at_root(struct path_walk_state *walk)
{
	struct opened_directory_with_trust *at = walk->at;

	if (at->descriptor >= 0)
		close(at->descriptor);
	strcpy(at->path, "/");
	at->descriptor = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return at->descriptor < 0 ? -errno : check_directory_trust("/", NULL);
}

/* The link's text comes before what is still to go. */
static int walk_follow_link(struct path_walk_state *walk, int link, const char *name,
			    const struct stat *status)
{
	char text[PATH_MAX], rest[PATH_MAX];
	ssize_t length;

	if (!is_trusted_owner(status->st_uid)) {
		size_t size = sizeof(walk->at->doubt.path);

		if (snprintf(walk->at->doubt.path, size, "%s/%s", walk->at->path, name) >=
		    (int)size)
			return -ENAMETOOLONG;
		walk->at->doubt.owner = status->st_uid;
		walk->at->doubt.writable = false;
		return -ELOOP;
	}
	length = readlinkat(link, "", text, sizeof(text) - 1);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	if (++walk->followed_link_count > SYMBOLIC_LINKS_MAX)
		return -EMLINK;
	if (snprintf(rest, sizeof(rest), "%s/%s", text, walk->remaining_path) >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	strcpy(walk->remaining_path, rest);
	return text[0] == '/' ? walk_restart_at_root(walk) : 0;
}

static int walk_step_into_entry(struct path_walk_state *walk, const char *name)
{
	int base = walk->at->descriptor, error;
	int next = openat(base, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat status;

	if (next < 0 && errno == ENOENT && walk->new_directory_mode) {
		if (mkdirat(base, name, walk->new_directory_mode) && errno != EEXIST)
			return -errno;
		next = openat(base, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	}
	if (next < 0)
		return -errno;
	error = fstat(next, &status) ? -errno : 0;
	if (!error && S_ISDIR(status.st_mode))
		return walk_enter_directory(walk, next, name, &status);
	if (!error)
		error = S_ISLNK(status.st_mode) ? walk_follow_link(walk, next, name, &status)
						: -ENOTDIR;
	close(next);
	return error;
}

int trusted_path_open_or_make_directory(const char *path, mode_t mode,
					struct opened_directory_with_trust *ret)
{
	struct path_walk_state walk = {.at = ret, .new_directory_mode = mode};
	char working[PATH_MAX] = "";
	int error = 0;

	ret->descriptor = -1;
	ret->trusted = true;
	if (path[0] != '/' && !getcwd(working, sizeof(working)))
		return -errno;
	if (snprintf(walk.remaining_path, sizeof(walk.remaining_path), "%s/%s", working, path) >=
	    (int)sizeof(walk.remaining_path))
		return -ENAMETOOLONG;
	error = walk_restart_at_root(&walk);
	while (!error && walk.remaining_path[0]) {
		size_t length = strcspn(walk.remaining_path, "/"),
		       next = length + (walk.remaining_path[length] == '/');
		char name[PATH_MAX];

		memcpy(name, walk.remaining_path, length);
		name[length] = '\0';
		memmove(walk.remaining_path, walk.remaining_path + next,
			strlen(walk.remaining_path + next) + 1);
		if (length && strcmp(name, "."))
			error = walk_step_into_entry(&walk, name);
	}
	if (error && ret->descriptor >= 0) {
		close(ret->descriptor);
		ret->descriptor = -1;
	}
	return error;
}

const char *trusted_path_describe_untrusted_part(const struct untrusted_path_part_info *doubt,
						 char *text, size_t size)
{
	if (doubt->writable)
		snprintf(text, size, "'%s' can be written by other users", doubt->path);
	else
		snprintf(text, size, "'%s' belongs to user %u", doubt->path,
			 (unsigned)doubt->owner);
	return text;
}
