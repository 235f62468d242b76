/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The directory of a run; see result_path.h.
 *
 * `<OUTPUT_PATH>/<date_time>/`, or OUTPUT_PATH itself without TIME_OUTPUT. What is there already
 * is never touched without FORCE, but for an empty directory that the user named: a suffix -2,
 * -3, … makes the name free. mkdir decides who owns a name, so that runs started at the same moment
 * do not meet. In a process of a parallel job (mpirun kymo sample …) the name says the rank, unless
 * OUTPUT_PATH does.
 */
#include "cmd/result_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/rank.h"

enum { RESULT_SUFFIX_MAX = 10000 };

int result_make_directories(const char *path)
{
	char partial[PATH_MAX];
	size_t length = strlen(path);

	if (!length || length >= sizeof(partial))
		return length ? -ENAMETOOLONG : -ENOENT;
	memcpy(partial, path, length + 1);
	for (char *slash = partial + 1;; slash++) {
		char kept = *slash;
		struct stat status;

		if (kept && kept != '/')
			continue;
		*slash = '\0';
		if (mkdir(partial, 0777) && errno != EEXIST) {
			int error = errno;

			if (stat(partial, &status)) /* EROFS, EACCES on one that exists are fine */
				return -error;
		}
		*slash = kept;
		if (!kept)
			return 0;
	}
}

static bool result_is_empty(const char *path)
{
	DIR *directory = opendir(path);
	bool empty = directory != NULL;

	if (!directory)
		return false;
	for (struct dirent *entry; empty && (entry = readdir(directory));)
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(directory);
	return empty;
}

static int result_failed(const char *path, int error, struct problem *problem)
{
	return problem_set(problem, -error,
			   "cannot make the result directory '%s': %s; choose another one with -o",
			   path, strerror(error));
}

/* Claims `base`, or base-2, base-3, …; *ret is malloc'ed. `named`: by the user, who may have made
 * it; an empty one that nobody named is another run's that has just begun. */
static int result_claim(const char *base, bool named, bool force, char **ret,
			struct problem *problem)
{
	for (unsigned n = 1; n < RESULT_SUFFIX_MAX; n++) {
		char *path;

		if ((n == 1 ? asprintf(&path, "%s", base) : asprintf(&path, "%s-%u", base, n)) < 0)
			return problem_set(problem, -ENOMEM, "out of memory");
		if (!mkdir(path, 0777) ||
		    (errno == EEXIST && (force || (named && n == 1 && result_is_empty(path))))) {
			*ret = path;
			return 0;
		}
		if (errno != EEXIST) {
			int error = result_failed(path, errno, problem);

			free(path);
			return error;
		}
		free(path);
	}
	return result_failed(base, EEXIST, problem);
}

/* `latest` in the same directory; failing is no harm. A file of that name is left alone. */
static void result_link_latest(const char *directory)
{
	char link_path[PATH_MAX], temporary[PATH_MAX];
	const char *slash = strrchr(directory, '/');
	struct stat status;
	int length = (int)(slash - directory);

	if (snprintf(link_path, sizeof(link_path), "%.*s/latest", length, directory) >=
		    (int)sizeof(link_path) ||
	    snprintf(temporary, sizeof(temporary), "%.*s/.latest-%ld", length, directory,
		     (long)getpid()) >= (int)sizeof(temporary))
		return;
	if (!lstat(link_path, &status) && !S_ISLNK(status.st_mode))
		return;
	if (symlink(slash + 1, temporary) || rename(temporary, link_path))
		unlink(temporary);
}

/* Files of an earlier run would be taken for part of this one: its spool files, and the time its
 * collection began (core/session_age.c), by which the windows of this one would be over. */
static void result_empty_spool(const char *directory)
{
	static const char *const patterns[] = {"*.spool", "collection_start"};
	char pattern[PATH_MAX];
	glob_t found;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		snprintf(pattern, sizeof(pattern), "%s/spool/%s", directory, patterns[i]);
		if (glob(pattern, GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t j = 0; j < found.gl_pathc; j++)
			unlink(found.gl_pathv[j]);
		globfree(&found);
	}
}

static bool result_rank(struct rank *ret)
{
	return rank_from_environment(environ, ret);
}

/* The part of the name that says the rank. */
static void result_rank_suffix(const char *pattern, char *ret, size_t size)
{
	struct rank rank;

	*ret = '\0';
	if (result_rank(&rank) && !strstr(pattern, "%r"))
		snprintf(ret, size, "-rank%u", rank.rank);
}

static int result_base(const struct resolved *settings, const struct result_keys *keys, char **ret,
		       struct problem *problem)
{
	char *expanded, *time = NULL, rank[32];
	bool timed = resolved_bool(settings, SETTING_TIME_OUTPUT);
	int error = result_path_expand(resolved_text(settings, SETTING_OUTPUT_PATH), keys,
				       &expanded, problem);

	if (error)
		return error;
	for (size_t length = strlen(expanded); length > 1 && expanded[length - 1] == '/';)
		expanded[--length] = '\0';
	error = timed ? result_path_expand("/%t", keys, &time, problem) : 0;
	result_rank_suffix(resolved_text(settings, SETTING_OUTPUT_PATH), rank, sizeof(rank));
	if (!error && asprintf(ret, "%s%s%s", expanded, timed ? time : "", rank) < 0)
		error = problem_set(problem, -ENOMEM, "out of memory");
	free(expanded);
	free(time);
	return error;
}

static int result_make_parents(const char *base, struct problem *problem)
{
	char parent[PATH_MAX];
	const char *slash = strrchr(base, '/');
	int error;

	if (!slash || slash == base)
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - base), base);
	error = result_make_directories(parent);
	return error ? result_failed(parent, -error, problem) : 0;
}

int result_directory_create(const struct resolved *settings, const struct result_keys *keys,
			    char **ret, struct problem *problem)
{
	char *base, *path = NULL;
	bool force = resolved_bool(settings, SETTING_FORCE);
	bool named = !resolved_bool(settings, SETTING_TIME_OUTPUT);
	struct rank rank = {0};
	int error = result_base(settings, keys, &base, problem);

	if (error)
		return error;
	error = result_make_parents(base, problem);
	if (!error)
		error = result_claim(base, named, force, &path, problem);
	free(base);
	if (error)
		return error;
	*ret = realpath(path, NULL);
	if (!*ret)
		error = result_failed(path, errno, problem);
	else if (access(*ret, W_OK | X_OK))
		error = result_failed(path, errno, problem);
	free(path);
	if (error)
		return error;
	if (force)
		result_empty_spool(*ret);
	/* Of the ranks of a job, the first one is what is looked at first. */
	if (resolved_bool(settings, SETTING_TIME_OUTPUT) && (!result_rank(&rank) || !rank.rank))
		result_link_latest(*ret);
	return 0;
}

static bool result_has(const char *directory, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

static bool result_is_result(const char *directory)
{
	return result_has(directory, "launch.json") || result_has(directory, "spool");
}

static int result_find_newest(char **ret, struct problem *problem)
{
	glob_t found;
	struct timespec newest = {0};
	const char *best = NULL;

	if (!glob("kymo-*-output/latest", GLOB_NOSORT, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			struct stat status;

			if (lstat(found.gl_pathv[i], &status) ||
			    status.st_mtim.tv_sec < newest.tv_sec ||
			    (status.st_mtim.tv_sec == newest.tv_sec &&
			     status.st_mtim.tv_nsec < newest.tv_nsec))
				continue;
			newest = status.st_mtim;
			best = found.gl_pathv[i];
		}
		*ret = best ? strdup(best) : NULL;
		globfree(&found);
		if (best)
			return *ret ? 0 : problem_set(problem, -ENOMEM, "out of memory");
	}
	return problem_set(problem, -ENOENT,
			   "no results here (kymo-*-output/latest): name the result directory");
}

int result_directory_find(const char *named, char **ret, struct problem *problem)
{
	struct stat status;
	bool is_latest;

	if (!named)
		return result_find_newest(ret, problem);
	if (stat(named, &status))
		return problem_set(problem, -errno, "cannot read results in '%s': %s", named,
				   strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return problem_set(problem, -ENOTDIR,
				   "'%s' is not a result directory (kymo sample makes them)",
				   named);
	if (access(named, R_OK | X_OK))
		return problem_set(problem, -errno, "cannot read results in '%s': %s", named,
				   strerror(errno));
	is_latest = !result_is_result(named) && result_has(named, "latest");
	if (!is_latest && !result_is_result(named))
		return problem_set(problem, -ENOENT,
				   "'%s' holds no kymo results (neither launch.json nor spool/)",
				   named);
	if (asprintf(ret, "%s%s", named, is_latest ? "/latest" : "") < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	return 0;
}
