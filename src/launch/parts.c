/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See parts.h.
 *
 * The links stay, because a daemon of the program's may execute another program at any time. Their
 * directory belongs to the user and nobody else can write there; other users may pass, as a program
 * can change its user.
 */
#include "launch/parts.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"

/* In the build tree, from the directory of the command; installed, from the prefix. */
static const struct {
	const char *path_in_build_tree, *path_in_prefix;
} installation_part_paths[PART_COUNT] = {
	[PART_LIBKYMO] = {"../libkymo/libkymo.so", KYMO_LIBDIR "/kymo/libkymo.so"},
	[PART_LIBKYMO_DL] = {"../libkymo-dl/libkymo-dl.so", KYMO_LIBDIR "/kymo/libkymo-dl.so"},
	[PART_LIBKYMO_SDK] = {"../libkymo-sdk/libkymo-sdk.so", KYMO_LIBDIR "/kymo/libkymo-sdk.so"},
	[PART_LIBKYMO_GPU] = {"../libkymo-gpu/libkymo-gpu.so", KYMO_LIBDIR "/kymo/libkymo-gpu.so"},
	[PART_LIBKYMO_OPENCL] = {"../libkymo-opencl/libkymo-opencl.so",
				 KYMO_LIBDIR "/kymo/libkymo-opencl.so"},
	[PART_NCCL_PLUGIN] = {"../nccl/libnccl-profiler-kymo.so",
			      KYMO_LIBDIR "/libnccl-profiler-kymo.so"},
	[PART_COUNTER_DEFINITIONS] = {"../../share/kymo/counter_defs.yaml",
				      KYMO_DATADIR "/kymo/counter_defs.yaml"},
	[PART_PYTHON_START] = {"../../share/kymo/python/start/sitecustomize.py",
			       KYMO_DATADIR "/kymo/python/start/sitecustomize.py"},
};

enum installation_part_layout {
	PART_LAYOUT_BUILD_TREE,
	PART_LAYOUT_RELOCATED_PREFIX,
	PART_LAYOUT_CONFIGURED_PREFIX,
	PART_LAYOUT_COUNT
};

/* ---- the true paths ---- */

static void find_command_directory(char directory[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", directory, PATH_MAX - 1);
	char *slash;

	directory[length > 0 ? length : 0] = '\0';
	slash = strrchr(directory, '/');
	if (slash)
		*slash = '\0';
}

/* libdir and datadir may be configured to absolute paths, which moving does not change. */
static void format_installation_part_path(enum installation_part_layout layout,
					  enum installed_part_kind part, char *path, size_t size)
{
	const char *installed = installation_part_paths[part].path_in_prefix;
	char directory[PATH_MAX];

	find_command_directory(directory);
	if (layout == PART_LAYOUT_BUILD_TREE)
		snprintf(path, size, "%s/%s", directory,
			 installation_part_paths[part].path_in_build_tree);
	else if (installed[0] == '/')
		snprintf(path, size, "%s", installed);
	else if (layout == PART_LAYOUT_RELOCATED_PREFIX)
		snprintf(path, size, "%s/" KYMO_BINDIR_TO_PREFIX "/%s", directory, installed);
	else
		snprintf(path, size, KYMO_PREFIX "/%s", installed);
}

static bool find_part_in_layout(enum installation_part_layout layout, enum installed_part_kind part,
				char path[PATH_MAX])
{
	char from[PATH_MAX * 2];

	format_installation_part_path(layout, part, from, sizeof(from));
	return realpath(from, path) != NULL;
}

bool part_find_path(enum installed_part_kind part, char path[PATH_MAX])
{
	for (enum installation_part_layout layout = PART_LAYOUT_BUILD_TREE;
	     layout < PART_LAYOUT_COUNT; layout++) {
		if (find_part_in_layout(layout, PART_LIBKYMO, path) &&
		    find_part_in_layout(layout, part, path))
			return true;
	}
	path[0] = '\0';
	return false;
}

int part_find_path_or_set_problem(enum installed_part_kind part, char path[PATH_MAX],
				  struct problem *problem)
{
	char moved[PATH_MAX * 2], configured[PATH_MAX * 2];
	const char *name = strrchr(installation_part_paths[part].path_in_prefix, '/') + 1;

	if (part_find_path(part, path))
		return 0;
	format_installation_part_path(PART_LAYOUT_RELOCATED_PREFIX, part, moved, sizeof(moved));
	format_installation_part_path(PART_LAYOUT_CONFIGURED_PREFIX, part, configured,
				      sizeof(configured));
	return problem_set(problem, -ENOENT, "cannot find %s (looked for '%s' and '%s')", name,
			   moved, configured);
}

/* ---- paths that can be named ---- */

static bool path_has_list_separators(const char *path)
{
	return strpbrk(path, " :;,\t\n") != NULL;
}

/* A directory that is this user's alone to write. */
static bool make_or_check_private_directory(const char *path)
{
	struct stat status;

	return (!mkdir(path, 0711) || errno == EEXIST) && !lstat(path, &status) &&
	       S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
	       !(status.st_mode & (S_IWGRP | S_IWOTH));
}

static bool link_leads_to(const char *link, const char *target)
{
	char there[PATH_MAX];
	ssize_t length = readlink(link, there, sizeof(there) - 1);

	if (length < 0)
		return false;
	there[length] = '\0';
	return !strcmp(there, target);
}

/* Replaces a link of this name that leads elsewhere; other runs may do the same just now. */
static bool make_or_replace_part_link(const char *link, const char *target)
{
	char fresh[PATH_MAX];

	if (link_leads_to(link, target))
		return true;
	snprintf(fresh, sizeof(fresh), "%s.%d", link, (int)getpid());
	unlink(fresh);
	if (symlink(target, fresh))
		return false;
	if (rename(fresh, link))
		unlink(fresh);
	return link_leads_to(link, target);
}

/* FNV-1a */
static uint64_t hash_text_fnv1a(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return hash;
}

bool part_find_or_link_preload_path(enum installed_part_kind part, unsigned most,
				    char path[PATH_MAX])
{
	static const char *const roots[] = {"/var/tmp", "/tmp", "/dev/shm"};
	char directory[PATH_MAX], links[64], link[128];
	char *slash;

	if (!part_find_path(part, path))
		return false;
	if (!path_has_list_separators(path) && strlen(path) <= most)
		return true;
	strcpy(directory, path);
	slash = strrchr(directory, '/');
	*slash = '\0';
	for (unsigned i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(links, sizeof(links), "%s/kymo-%u", roots[i], (unsigned)geteuid());
		snprintf(link, sizeof(link), "%s/%016llx", links,
			 (unsigned long long)hash_text_fnv1a(directory));
		if (!make_or_check_private_directory(links) ||
		    !make_or_replace_part_link(link, directory))
			continue;
		snprintf(path, PATH_MAX, "%s/%s", link, slash + 1);
		return true;
	}
	path[0] = '\0';
	return false;
}
