/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See cgroup_tree.h. /proc/self/cgroup lists the hierarchies, /proc/self/mountinfo says where they
 * are mounted. Version 2's hierarchy has perf events unless one of version 1 took them.
 */
#include "outside/cgroup_tree.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define DEPTH_MAX 32

static bool list_has_word(const char *list, const char *word, size_t size)
{
	while (*list) {
		size_t length = strcspn(list, ",");

		if (length == size && !memcmp(list, word, size))
			return true;
		list += length + (list[length] == ',');
	}
	return false;
}

/* Are all controllers of a hierarchy among a mount's options? */
static bool options_have_all(const char *options, const char *controllers)
{
	while (*controllers) {
		size_t length = strcspn(controllers, ",");

		if (!list_has_word(options, controllers, length))
			return false;
		controllers += length + (controllers[length] == ',');
	}
	return true;
}

/* The hierarchy that a mount shows, as /proc/self/cgroup names it. */
static bool find_controllers(const char *type, const char *options,
			     char controllers[OUTSIDE_CONTROLLERS_BYTES])
{
	char *line = NULL, *names;
	size_t room = 0;
	bool found = false;
	FILE *file = fopen("/proc/self/cgroup", "re");

	controllers[0] = '\0';
	if (!strcmp(type, "cgroup2")) {
		found = file != NULL;
	} else {
		while (file && !found && getline(&line, &room, file) > 0) {
			names = strchr(line, ':');
			if (!names || names[1] == ':')
				continue;
			names++;
			names[strcspn(names, ":")] = '\0';
			found = strlen(names) < OUTSIDE_CONTROLLERS_BYTES &&
				options_have_all(options, names);
			if (found)
				strcpy(controllers, names);
		}
	}
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* ID PARENT DEVICE ROOT DIRECTORY OPTIONS [TAGS]... - TYPE SOURCE SUPER-OPTIONS (proc(5)). Paths
 * with blanks are written otherwise there, and are not looked for. */
static bool parse_mount(const char *line, struct cgroup_mount *ret)
{
	char root[PATH_MAX], directory[PATH_MAX], type[32], options[512];
	const char *behind = strstr(line, " - ");

	if (!behind || sscanf(line, "%*s %*s %*s %4095s %4095s", root, directory) != 2 ||
	    sscanf(behind, " - %31s %*s %511s", type, options) != 2 || strncmp(type, "cgroup", 6) ||
	    !find_controllers(type, options, ret->controllers))
		return false;
	ret->has_perf_events = list_has_word(ret->controllers, "perf_event", 10);
	ret->directory = strdup(directory);
	ret->root = strdup(strcmp(root, "/") ? root : "");
	return true;
}

static int compare_mounts(const void *left, const void *right)
{
	const struct cgroup_mount *a = left, *b = right;

	return (int)b->has_perf_events - (int)a->has_perf_events;
}

static void set_perf_events_of_version_2(struct cgroup_mount *mounts, int count)
{
	bool taken = false;

	for (int i = 0; i < count; i++)
		taken |= mounts[i].has_perf_events;
	for (int i = 0; i < count && !taken; i++)
		mounts[i].has_perf_events = !mounts[i].controllers[0];
}

int cgroup_mounts_read(struct cgroup_mount **ret)
{
	struct cgroup_mount *mounts = NULL, *more;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t room = 0;
	int count = 0;

	*ret = NULL;
	if (!file)
		return -errno;
	while (getline(&line, &room, file) > 0) {
		struct cgroup_mount mount;

		if (!parse_mount(line, &mount))
			continue;
		more = mount.directory && mount.root
			       ? realloc(mounts, (size_t)(count + 1) * sizeof(*mounts))
			       : NULL;
		if (!more) {
			free(mount.directory);
			free(mount.root);
			break;
		}
		mounts = more;
		mounts[count++] = mount;
	}
	free(line);
	fclose(file);
	set_perf_events_of_version_2(mounts, count);
	if (count)
		qsort(mounts, (size_t)count, sizeof(*mounts), compare_mounts);
	*ret = mounts;
	return count;
}

void cgroup_mounts_free(struct cgroup_mount *mounts, int count)
{
	for (int i = 0; i < count; i++) {
		free(mounts[i].directory);
		free(mounts[i].root);
	}
	free(mounts);
}

static void visit_below(const char *directory, const char *path, int depth,
			bool (*each)(void *context, const char *path), void *context)
{
	char below[PATH_MAX];
	struct dirent *entry;
	DIR *groups;

	snprintf(below, sizeof(below), "%s%s", directory, path);
	groups = opendir(below);
	while (groups && depth < DEPTH_MAX && (entry = readdir(groups))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >=
			    (int)sizeof(below))
			continue;
		if (each(context, below))
			visit_below(directory, below, depth + 1, each, context);
	}
	if (groups)
		closedir(groups);
}

void cgroup_mount_visit(const struct cgroup_mount *mount,
			bool (*each)(void *context, const char *path), void *context)
{
	visit_below(mount->directory, "", 0, each, context);
}
