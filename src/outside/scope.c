/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See scope.h.
 */
#include "outside/scope.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outside/cgroup_tree.h"

#define FILE_BYTES_MAX     8192
#define CONTAINER_ID_LEAST 2
#define HASH_LEAST         12 /* digits of an ID, behind the name of who made it */

/* ---- choosing ---- */

/* `path`: in the mount's directory. Takes what is there. */
static int take_group(struct outside_scope *scope, const struct cgroup_mount *mount,
		      const char *path, struct problem *problem)
{
	char directory[PATH_MAX];
	size_t length = strlen(path);

	while (length && path[length - 1] == '/')
		length--;
	scope->kind = OUTSIDE_SCOPE_CGROUP;
	memcpy(scope->controllers, mount->controllers, sizeof(scope->controllers));
	if (asprintf(&scope->cgroup, "%s%.*s", mount->root, (int)length, path) < 0) {
		scope->cgroup = NULL;
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	snprintf(directory, sizeof(directory), "%s%s", mount->directory, path);
	if (mount->has_perf_events)
		scope->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

/* The part of an absolute path behind the mount's directory, or NULL. */
static const char *find_path_in_mount(const struct cgroup_mount *mount, const char *path)
{
	size_t length = strlen(mount->directory);

	return !strncmp(path, mount->directory, length) && (path[length] == '/' || !path[length])
		       ? path + length
		       : NULL;
}

/* As it is in the file system, or from a mount's directory on, with or without its root. */
static bool find_group_in_mount(const struct cgroup_mount *mount, const char *path,
				char ret[PATH_MAX])
{
	const char *inside = find_path_in_mount(mount, path);
	size_t root = strlen(mount->root);
	char whole[PATH_MAX];
	struct stat status;

	if (!inside && root && !strncmp(path, mount->root, root))
		inside = path + root;
	if (!inside)
		inside = path;
	if (snprintf(ret, PATH_MAX, "%s%s", *inside && *inside != '/' ? "/" : "", inside) >=
		    PATH_MAX ||
	    snprintf(whole, sizeof(whole), "%s%s", mount->directory, ret) >= (int)sizeof(whole))
		return false;
	return !stat(whole, &status) && S_ISDIR(status.st_mode);
}

int outside_scope_set_cgroup(struct outside_scope *scope, const char *path, struct problem *problem)
{
	struct cgroup_mount *mounts;
	char resolved[PATH_MAX], inside[PATH_MAX];
	int count = cgroup_mounts_read(&mounts), error = -ENOENT;

	if (strstr(path, "..") || !realpath(path, resolved))
		snprintf(resolved, sizeof(resolved), "%s", path);
	for (int pass = 0; pass < 2 && error == -ENOENT; pass++) {
		/* A path in the file system has one meaning. */
		for (int i = 0; i < count && error == -ENOENT; i++) {
			if ((pass || find_path_in_mount(&mounts[i], resolved)) &&
			    find_group_in_mount(&mounts[i], pass ? path : resolved, inside))
				error = take_group(scope, &mounts[i], inside, problem);
		}
	}
	if (error == -ENOENT)
		problem_set(problem, error,
			    "--cgroup: there is no control group '%.200s'; a path below "
			    "/sys/fs/cgroup is needed, or one as in /proc/PID/cgroup%s",
			    path, count > 0 ? "" : " (no hierarchy of control groups is mounted)");
	cgroup_mounts_free(mounts, count);
	return error;
}

/* The ID in a group's name: docker-ID.scope, crio-ID, cri-containerd-ID.scope, libpod-ID, ID,
 * machine-NAME.scope, lxc.payload.NAME. Its size is in *ret. */
static const char *find_container_id(const char *name, size_t *ret)
{
	static const char *const fronts[] = {"lxc.payload.", "lxc.monitor.", "machine-"};
	size_t size = strcspn(name, "."), hash;

	if (!strncmp(name, "lxc.monitor.", 12))
		return NULL;
	for (unsigned i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		size_t length = strlen(fronts[i]);

		if (!strncmp(name, fronts[i], length)) {
			*ret = strlen(name) - length;
			if (*ret > 6 && !strcmp(name + strlen(name) - 6, ".scope"))
				*ret -= 6;
			return name + length;
		}
	}
	for (hash = size; hash && isxdigit((unsigned char)name[hash - 1]); hash--)
		;
	if (size - hash < HASH_LEAST || (hash && name[hash - 1] != '-' && name[hash - 1] != '_'))
		return NULL;
	*ret = size - hash;
	return name + hash;
}

struct container_search {
	const char *id;
	char found[NAME_MAX + 1]; /* the whole ID; "": none yet */
	char path[PATH_MAX];
	bool is_ambiguous;
	char other[NAME_MAX + 1];
};

static bool look_at_group(void *context, const char *path)
{
	struct container_search *search = context;
	size_t size, wanted = strlen(search->id);
	const char *id = find_container_id(strrchr(path, '/') + 1, &size);

	if (!id || size < wanted || strncmp(id, search->id, wanted))
		return true;
	if (!search->found[0]) {
		snprintf(search->found, sizeof(search->found), "%.*s", (int)size, id);
		snprintf(search->path, sizeof(search->path), "%s", path);
	} else if (strlen(search->found) != size || strncmp(search->found, id, size)) {
		search->is_ambiguous = true;
		snprintf(search->other, sizeof(search->other), "%.*s", (int)size, id);
	}
	return false; /* what is below belongs to the same container */
}

int outside_scope_set_container(struct outside_scope *scope, const char *id,
				struct problem *problem)
{
	struct container_search search = {.id = id};
	struct cgroup_mount *mounts;
	int count, error = -ENOENT;

	if (strlen(id) < CONTAINER_ID_LEAST || strchr(id, '/'))
		return problem_set(problem, -EINVAL,
				   "--container: '%.100s' is no ID of a container, or the "
				   "beginning of one",
				   id);
	count = cgroup_mounts_read(&mounts);
	for (int i = 0; i < count && !search.found[0]; i++) {
		cgroup_mount_visit(&mounts[i], look_at_group, &search);
		if (search.is_ambiguous)
			error = problem_set(problem, -EINVAL,
					    "--container: several containers begin with '%s': "
					    "%.64s, %.64s",
					    id, search.found, search.other);
		else if (search.found[0])
			error = take_group(scope, &mounts[i], search.path, problem);
	}
	cgroup_mounts_free(mounts, count);
	if (error == -ENOENT)
		problem_set(problem, error,
			    "--container: no control group has the ID '%.100s' in its name (are "
			    "you in the same cgroup namespace as the container?)",
			    id);
	return error;
}

int outside_scope_set_user(struct outside_scope *scope, const char *user, struct problem *problem)
{
	const struct passwd *entry = getpwnam(user);
	char *end;
	unsigned long number = strtoul(user, &end, 10);

	scope->kind = OUTSIDE_SCOPE_USER;
	if (entry)
		scope->user = entry->pw_uid;
	else if (isdigit((unsigned char)*user) && !*end && number < UINT32_MAX)
		scope->user = (uid_t)number;
	else
		return problem_set(problem, -EINVAL, "--user: there is no user '%.100s'", user);
	return 0;
}

void outside_scope_deinit(struct outside_scope *scope)
{
	free(scope->cgroup);
	if (scope->directory >= 0)
		close(scope->directory);
	*scope = (struct outside_scope)OUTSIDE_SCOPE_INITIALIZER;
}

/* ---- looking at processes ---- */

static bool read_process_file(uint32_t pid, const char *name, char text[FILE_BYTES_MAX])
{
	char path[64];
	ssize_t length;
	int file;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	length = read(file, text, FILE_BYTES_MAX - 1);
	close(file);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static bool is_group_or_below(const char *path, const char *group)
{
	size_t length = strlen(group);

	return !strncmp(path, group, length) && (!path[length] || path[length] == '/');
}

/* HIERARCHY:CONTROLLERS:PATH, a line. False: no more. */
static bool next_cgroup_line(char **at, const char **controllers, const char **path)
{
	char *line = strsep(at, "\n"), *colon = line ? strchr(line, ':') : NULL;

	if (!colon)
		return false;
	*controllers = ++colon;
	colon = strchr(colon, ':');
	if (!colon)
		return false;
	*colon = '\0';
	*path = colon + 1;
	return true;
}

int outside_scope_check_process(const struct outside_scope *scope, uint32_t pid)
{
	char text[FILE_BYTES_MAX], *at = text;
	const char *controllers, *path;
	unsigned user;

	if (scope->kind == OUTSIDE_SCOPE_USER) {
		if (!read_process_file(pid, "status", text))
			return -ESRCH;
		at = strstr(text, "\nUid:");
		return at && sscanf(at, " Uid: %*u %u", &user) == 1 && user == scope->user;
	}
	if (!read_process_file(pid, "cgroup", text))
		return -ESRCH;
	while (next_cgroup_line(&at, &controllers, &path)) {
		if (!strcmp(controllers, scope->controllers))
			return is_group_or_below(path, scope->cgroup);
	}
	return 0;
}

/* Of the hierarchies that place the process in no group but their root, none is worth a word. */
static unsigned rate_hierarchy(const struct outside_scope *scope, const char *controllers,
			       const char *path)
{
	if (scope->kind == OUTSIDE_SCOPE_CGROUP)
		return !strcmp(controllers, scope->controllers);
	if (!path[1])
		return 1;
	return !*controllers ? 4 : strstr(controllers, "cpu") ? 3 : 2;
}

char *outside_scope_read_cgroup(const struct outside_scope *scope, uint32_t pid)
{
	char text[FILE_BYTES_MAX], *at = text;
	const char *controllers, *path, *best = NULL;
	unsigned best_rate = 0;

	if (!read_process_file(pid, "cgroup", text))
		return NULL;
	while (next_cgroup_line(&at, &controllers, &path)) {
		unsigned rate = rate_hierarchy(scope, controllers, path);

		if (rate > best_rate) {
			best_rate = rate;
			best = path;
		}
	}
	return best ? strdup(best) : NULL;
}
