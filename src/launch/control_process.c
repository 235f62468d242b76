/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See control_process.h. A spool file is trusted as little as any file: of the header only the
 * magic, the version and words that are counters are used.
 */
#include "launch/control_process.h"
#include "common/foreign_file.h"
#include "common/trusted_path.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/process_stat.h"
#include "inject/inject.h"
#include "launch/surviving_processes.h"

enum { CTL_POLL_PAUSE_NS = 2000000, CTL_CHECK_TARGET_AFTER_NS = 500000000 };
static const int64_t CTL_ANSWER_TIMEOUT_NS = 5000000000;

/* ---- finding the file ---- */

static bool ctl_is_spool_path(const char *path)
{
	const char *suffix = strstr(path, ".spool");

	return suffix && (!suffix[6] || !strcmp(suffix + 6, " (deleted)")) && strchr(path, '/');
}

static bool ctl_is_spool_header_valid(const struct spool_file_header *header)
{
	return !memcmp(header->magic, SPOOL_MAGIC, sizeof(header->magic)) &&
	       header->version_major == SPOOL_VERSION_MAJOR && header->version_minor >= 1;
}

static int ctl_read_process_owner(pid_t pid, uid_t *ret)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
	if (stat(path, &status))
		return -ESRCH;
	*ret = status.st_uid;
	return 0;
}

int ctl_process_read_header(struct ctl_process *process)
{
	ssize_t got = pread(process->file, &process->header, sizeof(process->header), 0);

	return got == (ssize_t)sizeof(process->header) &&
			       ctl_is_spool_header_valid(&process->header)
		       ? 0
		       : -EPROTO;
}

/* Opens the file, whose header is written to. Who says where it is may be another user than we are:
 * it must be a file of that user's, ours or root's. -EPROTO: no spool file of our version. */
static int ctl_open_spool_file(const char *path, unsigned links, struct ctl_process *process)
{
	struct foreign_open_policy how = {.directory = AT_FDCWD,
					  .trust_flags = links | FOREIGN_ONLY_OWNER_OR_ROOT,
					  .flags = O_RDWR};
	struct stat status;
	int error = ctl_read_process_owner(process->pid, &how.owner);

	if (error)
		return error;
	process->file = foreign_open_file(&how, path, &status);
	if (process->file < 0)
		return process->file;
	error = ctl_process_read_header(process);
	if (error) {
		close(process->file);
		process->file = -1;
	}
	return error;
}

/* The mapped file, also where the process lives in another mount namespace or its directory was
 * removed. */
static int ctl_open_mapped_spool_file(struct ctl_process *process, const char *range,
				      const char *path)
{
	char other[PATH_MAX];
	int error = strstr(path, " (deleted)")
			    ? -ENOENT
			    : ctl_open_spool_file(path, FOREIGN_REFUSE_LINKS, process);

	if (error == -ENOENT) {
		snprintf(other, sizeof(other), "/proc/%ld/root%s", (long)process->pid, path);
		error = ctl_open_spool_file(other, FOREIGN_REFUSE_LINKS, process);
	}
	if (error == -ENOENT) {
		snprintf(other, sizeof(other), "/proc/%ld/map_files/%s", (long)process->pid, range);
		error = ctl_open_spool_file(other, FOREIGN_TRUST_ANY, process);
	}
	return error;
}

/* Among several spool files (a child of a raw fork holds its parent's as well) the process's own.
 */
static int ctl_search_maps_for_spool(struct ctl_process *process, FILE *maps, uint64_t start)
{
	char *line = NULL;
	size_t room = 0;
	int found = -ENOENT;

	while (found && getline(&line, &room, maps) > 0) {
		char range[64];
		unsigned long long offset = 1;
		char *path = strchr(line, '/');

		if (!path || sscanf(line, "%63s %*s %llx", range, &offset) != 2 || offset)
			continue;
		path[strcspn(path, "\n")] = '\0';
		if (!ctl_is_spool_path(path))
			continue;
		found = ctl_open_mapped_spool_file(process, range, path);
		if (!found && (process->header.process_start != start ||
			       process->header.pid != (uint32_t)process->pid)) {
			close(process->file);
			process->file = -1;
			found = -ENOENT;
		}
		if (!found)
			process->path = strdup(path);
	}
	free(line);
	return found;
}

static int ctl_set_open_problem(pid_t pid, int error, struct problem *problem)
{
	if (error == -ESRCH)
		return problem_set(problem, error, "there is no process %ld", (long)pid);
	if (error == -EACCES || error == -EPERM)
		return problem_set(
			problem, error,
			"process %ld belongs to another user: run kymo as that user or as root",
			(long)pid);
	if (error == -EPROTO)
		return problem_set(problem, error,
				   "process %ld is being profiled by another version of kymo",
				   (long)pid);
	return problem_set(
		problem, -ENOENT,
		"process %ld is not being profiled by kymo (to start: kymo attach -p %ld)",
		(long)pid, (long)pid);
}

/* The library, as the process has it mapped. */
static bool ctl_find_mapped_libkymo(FILE *maps, char library[PATH_MAX])
{
	char *line = NULL;
	size_t room = 0;
	bool found = false;

	while (!found && getline(&line, &room, maps) > 0) {
		const char *path = strchr(line, '/'), *name = path ? strrchr(path, '/') : NULL;

		if (!name || strcmp(name, "/libkymo.so\n") || strlen(path) > PATH_MAX)
			continue;
		snprintf(library, PATH_MAX, "%.*s", (int)strlen(path) - 1, path);
		found = true;
	}
	free(line);
	return found;
}

/* A process that has used little CPU time has not begun to record (libkymo/dormant.h), and has
 * nothing that could be asked: it is made to begin. */
static bool ctl_wake_dormant_process(pid_t pid, FILE *maps)
{
	char library[PATH_MAX];
	struct injection_call call = {
		.library = library, .function = "kymo_wake", .block = "", .block_size = 1};
	struct injection_target target;
	struct problem unused;
	int result;

	rewind(maps);
	return ctl_find_mapped_libkymo(maps, library) &&
	       !inject_check_target(pid, &target, &unused) &&
	       !inject_call_function(&target, &call, &result, &unused) && !result;
}

static int ctl_find_spool_or_wake_process(struct ctl_process *process, const char *path,
					  uint64_t start, bool wake)
{
	FILE *maps = fopen(path, "re");
	int error;

	if (!maps)
		return errno == ENOENT ? -ESRCH : -errno;
	error = ctl_search_maps_for_spool(process, maps, start);
	if (error == -ENOENT && wake && ctl_wake_dormant_process(process->pid, maps))
		error = -EAGAIN;
	fclose(maps);
	return error;
}

int ctl_process_open_spool_file(pid_t pid, struct ctl_process *ret, struct problem *problem)
{
	struct process_stat stat;
	char path[64];
	int error;

	*ret = (struct ctl_process){.pid = pid, .file = -1};
	if (!process_stat_read((uint32_t)pid, &stat) || process_stat_is_of_dead(&stat))
		return ctl_set_open_problem(pid, -ESRCH, problem);
	snprintf(ret->name, sizeof(ret->name), "%s", stat.name);
	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	error = ctl_find_spool_or_wake_process(ret, path, stat.start_ticks, true);
	if (error == -EAGAIN)
		error = ctl_find_spool_or_wake_process(ret, path, stat.start_ticks, false);
	if (!error && !ret->path)
		error = -ENOMEM;
	return error ? ctl_set_open_problem(pid, error, problem) : 0;
}

void ctl_process_close_spool_file(struct ctl_process *process)
{
	if (process->file >= 0)
		close(process->file);
	free(process->path);
	*process = (struct ctl_process){.file = -1};
}

/* ---- asking ---- */

static int ctl_explain_missing_answer(const struct ctl_process *process, struct problem *problem)
{
	struct process_stat stat;

	if (!process_stat_read((uint32_t)process->pid, &stat) || process_stat_is_of_dead(&stat) ||
	    stat.start_ticks != process->header.process_start)
		return problem_set(problem, -ESRCH, "process %ld ended", (long)process->pid);
	if (stat.state == 'T' || stat.state == 't')
		return problem_set(
			problem, -EAGAIN,
			"process %ld is stopped: it will answer when it continues (kill -CONT %ld)",
			(long)process->pid, (long)process->pid);
	return 0;
}

int ctl_process_write_command_and_wait(struct ctl_process *process, enum spool_control command,
				       struct problem *problem)
{
	const off_t requests = offsetof(struct spool_file_header, control_command);
	uint32_t words[2];
	int64_t begin, passed = 0;

	flock(process->file, LOCK_EX); /* others that ask wait */
	begin = (int64_t)monotonic_ns();
	if (ctl_process_read_header(process))
		return problem_set(problem, -EIO, "the spool file of process %ld cannot be read",
				   (long)process->pid);
	words[0] = (uint32_t)command;
	words[1] = process->header.control_request + 1;
	if (pwrite(process->file, words, sizeof(words), requests) != (ssize_t)sizeof(words))
		return problem_set(problem, -errno, "cannot write to the spool file: %s",
				   strerror(errno));
	while (!ctl_process_read_header(process) && process->header.control_answer != words[1]) {
		struct timespec pause = {0, CTL_POLL_PAUSE_NS};
		int error = passed > CTL_CHECK_TARGET_AFTER_NS
				    ? ctl_explain_missing_answer(process, problem)
				    : 0;

		if (error)
			return error;
		passed = (int64_t)monotonic_ns() - begin;
		if (passed > CTL_ANSWER_TIMEOUT_NS)
			return problem_set(problem, -ETIMEDOUT,
					   "process %ld did not answer within 5 s",
					   (long)process->pid);
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* ---- sessions ---- */

/* Is this file that of a process that lives now? Returns its pid, or 0. A user's file says nothing
 * of other users' processes. */
static pid_t ctl_find_live_process_of_file(const char *path)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD,
						       .trust_flags = FOREIGN_REFUSE_LINKS};
	struct spool_file_header header;
	struct stat status;
	uid_t owner;
	int file = foreign_open_file(&how, path, &status);
	bool whole;

	if (file < 0)
		return 0;
	whole = pread(file, &header, sizeof(header), 0) == (ssize_t)sizeof(header);
	close(file);
	if (!whole || !ctl_is_spool_header_valid(&header) || header.state == SPOOL_STATE_EXEC ||
	    !header.process_start ||
	    process_read_start_of_live(header.pid) != header.process_start ||
	    ctl_read_process_owner((pid_t)header.pid, &owner))
		return 0;
	return status.st_uid == owner || is_trusted_owner(status.st_uid) ? (pid_t)header.pid : 0;
}

static bool ctl_list_has_pid(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

int ctl_list_session_processes(const struct ctl_process *process, pid_t **ret, size_t *ret_count,
			       struct problem *problem)
{
	char pattern[PATH_MAX], session[PATH_MAX];
	const char *slash = strrchr(process->path, '/');
	size_t count = 1, short_count;
	pid_t *short_ones;
	glob_t files;
	int result;

	snprintf(pattern, sizeof(pattern), "%.*s/*.spool", (int)(slash - process->path),
		 process->path);
	result = glob(pattern, 0, NULL, &files);
	if (result && result != GLOB_NOMATCH)
		return problem_set(problem, -EIO, "cannot list '%s'", pattern);
	snprintf(session, sizeof(session), "%.*s/..", (int)(slash - process->path), process->path);
	short_count = surviving_processes_get_short_lived(session, &short_ones);
	*ret = calloc((result ? 0 : files.gl_pathc) + short_count + 1, sizeof(**ret));
	if (*ret)
		(*ret)[0] = process->pid;
	for (size_t i = 0; *ret && !result && i < files.gl_pathc; i++) {
		pid_t pid = ctl_find_live_process_of_file(files.gl_pathv[i]);

		if (pid && !ctl_list_has_pid(*ret, count, pid))
			(*ret)[count++] = pid;
	}
	for (size_t i = 0; *ret && i < short_count; i++) {
		if (!ctl_list_has_pid(*ret, count, short_ones[i]))
			(*ret)[count++] = short_ones[i];
	}
	free(short_ones);
	if (!result)
		globfree(&files);
	*ret_count = count;
	return *ret ? 0 : problem_set(problem, -ENOMEM, "out of memory");
}
