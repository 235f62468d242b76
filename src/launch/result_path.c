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
#include "launch/result_path.h"
#include "console/message.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/rank.h"
#include "kymo/spool.h"

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

static bool is_directory_empty(int directory)
{
	int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = again >= 0 ? fdopendir(again) : NULL;
	bool empty = entries != NULL;

	if (!entries) {
		if (again >= 0)
			close(again);
		return false;
	}
	for (struct dirent *entry; empty && (entry = readdir(entries));)
		empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(entries);
	return empty;
}

static int set_directory_problem(const char *path, int error, struct problem *problem)
{
	bool elsewhere = error != EMFILE && error != ENFILE;

	return problem_set(problem, -error, "cannot make the result directory '%s': %s%s", path,
			   strerror(error), elsewhere ? "; choose another one with -o" : "");
}

static int set_untrusted_directory_problem(const struct opened_directory_with_trust *at, int error,
					   const char *path, struct problem *problem)
{
	if (error == -ELOOP && at->doubt.path[0])
		return problem_set(problem, error,
				   "will not write to '%s': '%s' is a symbolic link of user %u; "
				   "name the place that it leads to, or choose another one with -o",
				   path, at->doubt.path, (unsigned)at->doubt.owner);
	return set_directory_problem(path, -error, problem);
}

/* Whoever owns a directory, or may write to it, chooses where the names in it lead. */
static int check_directory_ownership(int directory,
				     const struct opened_directory_with_trust *parent,
				     const char *name, struct problem *problem)
{
	char path[2 * PATH_MAX];
	struct stat status;

	snprintf(path, sizeof(path), "%s%s%s", parent->path, strcmp(name, ".") ? "/" : "",
		 strcmp(name, ".") ? name : "");
	if (fstat(directory, &status))
		return set_directory_problem(path, errno, problem);
	if (!is_trusted_owner(status.st_uid))
		return problem_set(problem, -EPERM,
				   "will not write to '%s': it belongs to user %u; choose another "
				   "directory with -o",
				   path, (unsigned)status.st_uid);
	if (status.st_mode & S_IWOTH)
		return problem_set(problem, -EPERM,
				   "will not write to '%s': every user can write to it; choose "
				   "another directory with -o",
				   path);
	return 0;
}

/* One of these names is this run's: 1, and `*ret` is open; 0: it is taken. */
static int try_to_claim_directory(int parent, const char *name, bool named, bool force, int *ret)
{
	/* Not for everybody to write to, whatever the umask. */
	bool made = !mkdirat(parent, name, 0775);

	if (!made && errno != EEXIST)
		return -errno;
	*ret = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
	if (*ret < 0)
		return made || (force && errno == EACCES) || (named && errno == ENOTDIR) ? -errno
											 : 0;
	if (made || force || (named && is_directory_empty(*ret)))
		return 1;
	close(*ret);
	return 0;
}

/* Claims the name `base`, or base-2, base-3, …; *ret_name is malloc'ed. `named`: by the user, who
 * may have made it; an empty one that nobody named is another run's that has just begun. */
static int claim_result_directory(const struct opened_directory_with_trust *parent,
				  const char *base, bool named, bool force, char **ret_name,
				  int *ret, struct problem *problem)
{
	for (unsigned n = 1; n < RESULT_SUFFIX_MAX; n++) {
		char *name;
		int result;

		if ((n == 1 ? asprintf(&name, "%s", base) : asprintf(&name, "%s-%u", base, n)) < 0)
			return problem_set(problem, -ENOMEM, "out of memory");
		result = try_to_claim_directory(parent->descriptor, name, named && n == 1, force,
						ret);
		if (result > 0) {
			/* Who named the directory looks there, and would find another run's. */
			if (named && n > 1)
				message_error(
					"'%s' has results of another run: those of this one go to "
					"'%s' (--force replaces the others)",
					base, name);
			*ret_name = name;
			return 0;
		}
		if (result < 0) {
			char path[2 * PATH_MAX];

			snprintf(path, sizeof(path), "%s/%s", parent->path, name);
			free(name);
			return set_directory_problem(path, -result, problem);
		}
		free(name);
	}
	return set_directory_problem(base, EEXIST, problem);
}

/* A link beside the directory; failing is no harm. A file of that name is left alone. */
static void update_link(int parent, const char *link, const char *name)
{
	char temporary[64];
	struct stat status;

	snprintf(temporary, sizeof(temporary), ".latest-%ld", (long)getpid());
	if (!fstatat(parent, link, &status, AT_SYMLINK_NOFOLLOW) && !S_ISLNK(status.st_mode))
		return;
	if (symlinkat(name, parent, temporary) || renameat(parent, temporary, parent, link))
		unlinkat(parent, temporary, 0);
}

/* Links of an earlier job that had more ranks would be taken for part of this one. */
static void remove_links_of_ranks_from(int parent, uint32_t rank)
{
	char link[64];
	struct stat status;

	for (;; rank++) {
		snprintf(link, sizeof(link), RESULT_LATEST_OF_RANK "%u", rank);
		if (fstatat(parent, link, &status, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISLNK(status.st_mode) || unlinkat(parent, link, 0))
			return;
	}
}

/* Every rank of a job has a link of its own. The first one is what is looked at first, so `latest`
 * leads to it. */
static void update_latest_links(int parent, const char *name)
{
	struct process_rank rank = {0};
	char link[64];
	bool is_of_job = rank_read_from_environment(environ, &rank);

	if (is_of_job) {
		snprintf(link, sizeof(link), RESULT_LATEST_OF_RANK "%u", rank.rank);
		update_link(parent, link, name);
	}
	if (rank.rank)
		return;
	update_link(parent, "latest", name);
	if (!is_of_job || rank.size)
		remove_links_of_ranks_from(parent, rank.size);
}

/* Files of an earlier run would be taken for part of this one: its spool files, records of devices
 * and of NCCL, and the time its collection began (core/process/session_age.c), by which the windows
 * of this one would be over. */
static void remove_earlier_spool_files(const char *directory)
{
	static const char *const patterns[] = {"spool/*.spool", "spool/*.gpu", "spool/*.nccl",
					       "spool/collection_start", SPOOL_SHORT_NAME};
	char pattern[PATH_MAX];
	glob_t found;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		snprintf(pattern, sizeof(pattern), "%s/%s", directory, patterns[i]);
		if (glob(pattern, GLOB_NOSORT, NULL, &found))
			continue;
		for (size_t j = 0; j < found.gl_pathc; j++)
			unlink(found.gl_pathv[j]);
		globfree(&found);
	}
}

static bool read_process_rank(struct process_rank *ret)
{
	return rank_read_from_environment(environ, ret);
}

/* The part of the name that says the rank. */
static void format_rank_suffix(const char *pattern, char *ret, size_t size)
{
	struct process_rank rank;

	*ret = '\0';
	if (read_process_rank(&rank) && !strstr(pattern, "%r"))
		snprintf(ret, size, "-rank%u", rank.rank);
}

static int format_result_base_path(const struct effective_settings *settings,
				   const struct result_key_values *keys, char **ret,
				   struct problem *problem)
{
	char *expanded, *time = NULL, rank[32];
	bool timed = effective_setting_bool(settings, SETTING_TIME_OUTPUT);
	int error = result_path_expand_keys(effective_setting_text(settings, SETTING_OUTPUT_PATH),
					    keys, &expanded, problem);

	if (error)
		return error;
	for (size_t length = strlen(expanded); length > 1 && expanded[length - 1] == '/';)
		expanded[--length] = '\0';
	error = timed ? result_path_expand_keys("/%t", keys, &time, problem) : 0;
	format_rank_suffix(effective_setting_text(settings, SETTING_OUTPUT_PATH), rank,
			   sizeof(rank));
	if (!error && asprintf(ret, "%s%s%s", expanded, timed ? time : "", rank) < 0)
		error = problem_set(problem, -ENOMEM, "out of memory");
	free(expanded);
	free(time);
	return error;
}

/* Opens the directory that `base` is to be made in; *ret_name points to its name. */
static int result_open_parent(char *base, struct opened_directory_with_trust *ret,
			      const char **ret_name, struct problem *problem)
{
	char *slash = strrchr(base, '/');
	int error;

	if (slash)
		*slash = '\0';
	error = trusted_path_open_or_make_directory(!slash          ? "."
						    : slash == base ? "/"
								    : base,
						    0775, ret);
	if (error)
		return set_untrusted_directory_problem(ret, error, slash == base ? "/" : base,
						       problem);
	*ret_name = slash ? slash + 1 : base;
	return 0;
}

/* The place's path: its name where nobody else can exchange a part of it. */
static int fill_result_place(struct result_place *ret,
			     const struct opened_directory_with_trust *parent, const char *name,
			     int directory, struct problem *problem)
{
	struct opened_directory_with_trust at;
	char path[2 * PATH_MAX], link[32];
	int error;

	/* An existing one that the user named may be a link. */
	snprintf(path, sizeof(path), "%s/%s", parent->path, name);
	error = trusted_path_open_or_make_directory(path, 0, &at);
	if (error)
		return set_untrusted_directory_problem(&at, error, path, problem);
	close(at.descriptor);
	*ret = (struct result_place){
		.shown = strdup(at.path), .descriptor = -1, .untrusted_part = at.doubt};
	snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
	ret->path = strdup(at.trusted && parent->trusted ? at.path : link);
	if (!at.trusted || !parent->trusted)
		ret->descriptor = directory;
	if (ret->path && ret->shown)
		return 0;
	ret->descriptor = -1;
	result_place_deinit(ret);
	return problem_set(problem, -ENOMEM, "out of memory");
}

void result_place_deinit(struct result_place *place)
{
	if (place->path && place->descriptor >= 0)
		close(place->descriptor);
	message_set_path_alias(NULL, NULL);
	free(place->path);
	free(place->shown);
	*place = (struct result_place){.descriptor = -1};
}

/* The directory, if it is empty, and the links that led to it. */
static void remove_directory_and_links(int parent, const char *name)
{
	struct process_rank rank = {0};
	char link[64], target[PATH_MAX];
	const char *const links[] = {"latest", link};

	rank_read_from_environment(environ, &rank);
	snprintf(link, sizeof(link), RESULT_LATEST_OF_RANK "%u", rank.rank);
	if (unlinkat(parent, name, AT_REMOVEDIR))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		ssize_t length = readlinkat(parent, links[i], target, sizeof(target));

		if (length == (ssize_t)strlen(name) && !strncmp(target, name, strlen(name)))
			unlinkat(parent, links[i], 0);
	}
}

void result_place_remove_if_empty(const struct result_place *place)
{
	const char *name = strrchr(place->shown, '/') + 1;
	int directory = open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC), parent;

	parent = directory >= 0 ? openat(directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (directory >= 0)
		close(directory);
	if (parent < 0)
		return;
	remove_directory_and_links(parent, name);
	close(parent);
}

int result_directory_open_or_create(const char *path, struct result_place *ret,
				    struct problem *problem)
{
	struct opened_directory_with_trust at;
	int error = trusted_path_open_or_make_directory(path, 0775, &at), directory;

	if (error)
		return set_untrusted_directory_problem(&at, error, path, problem);
	directory = openat(at.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(at.descriptor);
	if (directory < 0)
		return set_directory_problem(path, errno, problem);
	error = check_directory_ownership(directory, &at, ".", problem);
	if (!error)
		error = fill_result_place(ret, &at, ".", directory, problem);
	if (error || ret->descriptor != directory)
		close(directory);
	else
		message_set_path_alias(ret->path, ret->shown);
	return error;
}

int result_directory_create(const struct effective_settings *settings,
			    const struct result_key_values *keys, struct result_place *ret,
			    struct problem *problem)
{
	bool force = effective_setting_bool(settings, SETTING_FORCE);
	bool timed = effective_setting_bool(settings, SETTING_TIME_OUTPUT);
	struct opened_directory_with_trust parent;
	char *base, *name = NULL;
	const char *wanted = "";
	int directory = -1, error = format_result_base_path(settings, keys, &base, problem);

	if (error)
		return error;
	error = result_open_parent(base, &parent, &wanted, problem);
	if (error) {
		free(base);
		return error;
	}
	error = claim_result_directory(&parent, wanted, !timed, force, &name, &directory, problem);
	if (!error)
		error = check_directory_ownership(directory, &parent, name, problem);
	if (!error)
		error = fill_result_place(ret, &parent, name, directory, problem);
	if (!error && access(ret->path, W_OK | X_OK)) {
		/* The analyzer takes fill_result_place()'s error path for the good one.
		 * NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
		error = set_directory_problem(ret->shown, errno, problem);
		result_place_deinit(ret);
		directory = -1;
	}
	if (!error && force)
		remove_earlier_spool_files(ret->path);
	if (!error && timed)
		update_latest_links(parent.descriptor, name);
	if (directory >= 0 && (error || ret->descriptor != directory))
		close(directory);
	close(parent.descriptor);
	free(base);
	free(name);
	return error;
}

static bool directory_has_file_named(const char *directory, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", directory, name) < (int)sizeof(path) &&
	       !access(path, F_OK);
}

static bool is_result_directory(const char *directory)
{
	return directory_has_file_named(directory, "launch.json") ||
	       directory_has_file_named(directory, "spool");
}

static int find_newest_result(char **ret, struct problem *problem)
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
	return problem_set(
		problem, -ENOENT,
		"no results in this directory (kymo-*-output/latest): name the result directory");
}

int result_directory_find_existing(const char *named, char **ret, struct problem *problem)
{
	struct stat status;
	bool is_latest;

	if (!named)
		return find_newest_result(ret, problem);
	if (stat(named, &status))
		return problem_set(problem, -errno, "cannot read results in '%s': %s", named,
				   strerror(errno));
	if (!S_ISDIR(status.st_mode))
		return problem_set(problem, -ENOTDIR,
				   "'%s' is not a result directory (kymo sample creates them)",
				   named);
	if (access(named, R_OK | X_OK))
		return problem_set(problem, -errno, "cannot read results in '%s': %s", named,
				   strerror(errno));
	is_latest = !is_result_directory(named) && directory_has_file_named(named, "latest");
	if (!is_latest && !is_result_directory(named))
		return problem_set(problem, -ENOENT,
				   "'%s' contains no kymo results (neither launch.json nor spool/)",
				   named);
	if (asprintf(ret, "%s%s", named, is_latest ? "/latest" : "") < 0)
		return problem_set(problem, -ENOMEM, "out of memory");
	return 0;
}
