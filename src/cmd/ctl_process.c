/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See ctl_process.h. A spool file is trusted as little as any file: of the header only the magic,
 * the version and words that are counters are used.
 */
#include "cmd/ctl_process.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CTL_PAUSE_NS = 2000000, CTL_PATIENCE_NS = 500000000 };
static const int64_t CTL_TIMEOUT_NS = 5000000000;

static int64_t ctl_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* State letter and start time (fields 3 and 22 of /proc/PID/stat); '\0' when the process is gone.
 */
static char ctl_stat(pid_t pid, uint64_t *ret_start, char *name, size_t size)
{
	char path[64], text[1024], state = '\0';
	char *open, *close;
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = fopen(path, "re");
	if (file) {
		length = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[length] = '\0';
	open = strchr(text, '(');
	close = strrchr(text, ')'); /* a name may hold anything */
	if (!open || !close || close < open || sscanf(close + 1, " %c", &state) != 1)
		return '\0';
	if (name)
		snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
	*ret_start = 0;
	for (int field = 2; close && field < 22; field++)
		close = strchr(close + 1, ' ');
	if (close)
		*ret_start = strtoull(close, NULL, 10);
	return state == 'Z' || state == 'X' ? '\0' : state;
}

/* ---- finding the file ---- */

static bool ctl_is_spool(const char *path)
{
	const char *suffix = strstr(path, ".spool");

	return suffix && (!suffix[6] || !strcmp(suffix + 6, " (deleted)")) && strchr(path, '/');
}

static bool ctl_header_valid(const struct spool_file_header *header)
{
	return !memcmp(header->magic, SPOOL_MAGIC, sizeof(header->magic)) &&
	       header->version_major == SPOOL_VERSION_MAJOR && header->version_minor >= 1;
}

/* Maps the header. -EPROTO: no spool file of our version. */
static int ctl_map(const char *path, struct ctl_process *process)
{
	struct stat status;
	void *header;
	int error = 0;

	process->file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (process->file < 0)
		return -errno;
	if (fstat(process->file, &status) || !S_ISREG(status.st_mode) ||
	    status.st_size < (off_t)sizeof(*process->header)) {
		close(process->file);
		return -EPROTO;
	}
	header = mmap(NULL, sizeof(*process->header), PROT_READ | PROT_WRITE, MAP_SHARED,
		      process->file, 0);
	if (header == MAP_FAILED)
		error = -errno;
	else if (!ctl_header_valid(header))
		error = -EPROTO;
	if (error) {
		if (header != MAP_FAILED)
			munmap(header, sizeof(*process->header));
		close(process->file);
		return error;
	}
	process->header = header;
	return 0;
}

/* The mapped file, also where the process lives in another mount namespace or its directory was
 * removed. */
static int ctl_map_line(struct ctl_process *process, const char *range, const char *path)
{
	char other[PATH_MAX];
	int error = strstr(path, " (deleted)") ? -ENOENT : ctl_map(path, process);

	if (error == -ENOENT) {
		snprintf(other, sizeof(other), "/proc/%ld/root%s", (long)process->pid, path);
		error = ctl_map(other, process);
	}
	if (error == -ENOENT) {
		snprintf(other, sizeof(other), "/proc/%ld/map_files/%s", (long)process->pid, range);
		error = ctl_map(other, process);
	}
	return error;
}

/* Of several spool files (a child of a raw fork holds its parent's as well) the process's own. */
static int ctl_search_maps(struct ctl_process *process, FILE *maps, uint64_t start)
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
		if (!ctl_is_spool(path))
			continue;
		found = ctl_map_line(process, range, path);
		if (!found && process->header->process_start != start) {
			munmap(process->header, sizeof(*process->header));
			close(process->file);
			found = -ENOENT;
		}
		if (!found)
			process->path = strdup(path);
	}
	free(line);
	return found;
}

static int ctl_open_problem(pid_t pid, int error, struct problem *problem)
{
	if (error == -ESRCH)
		return problem_set(problem, error, "there is no process %ld", (long)pid);
	if (error == -EACCES || error == -EPERM)
		return problem_set(problem, error,
				   "process %ld belongs to somebody else: be that user, or root",
				   (long)pid);
	if (error == -EPROTO)
		return problem_set(problem, error,
				   "process %ld is profiled by another version of kymo", (long)pid);
	return problem_set(problem, -ENOENT,
			   "process %ld is not profiled by kymo (kymo attach -p %ld does that)",
			   (long)pid, (long)pid);
}

int ctl_process_open(pid_t pid, struct ctl_process *ret, struct problem *problem)
{
	char path[64];
	uint64_t start;
	FILE *maps;
	int error;

	*ret = (struct ctl_process){.pid = pid, .file = -1};
	if (!ctl_stat(pid, &start, ret->name, sizeof(ret->name)))
		return ctl_open_problem(pid, -ESRCH, problem);
	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	maps = fopen(path, "re");
	if (!maps)
		return ctl_open_problem(pid, errno == ENOENT ? -ESRCH : -errno, problem);
	error = ctl_search_maps(ret, maps, start);
	if (!error && !ret->path)
		error = -ENOMEM;
	fclose(maps);
	return error ? ctl_open_problem(pid, error, problem) : 0;
}

void ctl_process_close(struct ctl_process *process)
{
	if (process->header)
		munmap(process->header, sizeof(*process->header));
	if (process->file >= 0)
		close(process->file);
	free(process->path);
	*process = (struct ctl_process){.file = -1};
}

/* ---- asking ---- */

static int ctl_no_answer(const struct ctl_process *process, struct problem *problem)
{
	uint64_t start;
	char state = ctl_stat(process->pid, &start, NULL, 0);

	if (!state || start != process->header->process_start)
		return problem_set(problem, -ESRCH, "process %ld ended", (long)process->pid);
	if (state == 'T' || state == 't')
		return problem_set(problem, -EAGAIN,
				   "process %ld is stopped: it does what was asked when it goes on "
				   "(kill -CONT %ld)",
				   (long)process->pid, (long)process->pid);
	return 0;
}

int ctl_process_ask(struct ctl_process *process, enum spool_control command,
		    struct problem *problem)
{
	struct spool_file_header *header = process->header;
	int64_t begin, passed = 0;
	uint32_t request;

	flock(process->file, LOCK_EX); /* others that ask wait */
	begin = ctl_now();
	__atomic_store_n(&header->control_command, (uint32_t)command, __ATOMIC_RELAXED);
	/* release: whoever sees the request sees the command */
	request = __atomic_add_fetch(&header->control_request, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&header->control_answer, __ATOMIC_ACQUIRE) != request) {
		struct timespec pause = {0, CTL_PAUSE_NS};
		int error = passed > CTL_PATIENCE_NS ? ctl_no_answer(process, problem) : 0;

		if (error)
			return error;
		passed = ctl_now() - begin;
		if (passed > CTL_TIMEOUT_NS)
			return problem_set(problem, -ETIMEDOUT,
					   "process %ld did not answer within 5 s",
					   (long)process->pid);
		nanosleep(&pause, NULL);
	}
	return 0;
}

/* ---- sessions ---- */

/* Is this file that of a process that lives now? Returns its pid, or 0. */
static pid_t ctl_live(const char *path)
{
	struct ctl_process process = {.file = -1};
	uint64_t start;
	pid_t pid = 0;

	if (ctl_map(path, &process))
		return 0;
	if (process.header->state != SPOOL_STATE_EXEC &&
	    ctl_stat((pid_t)process.header->pid, &start, NULL, 0) &&
	    start == process.header->process_start)
		pid = (pid_t)process.header->pid;
	ctl_process_close(&process);
	return pid;
}

static bool ctl_holds(const pid_t *pids, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (pids[i] == pid)
			return true;
	}
	return false;
}

int ctl_session_processes(const struct ctl_process *process, pid_t **ret, size_t *ret_count,
			  struct problem *problem)
{
	char pattern[PATH_MAX];
	const char *slash = strrchr(process->path, '/');
	size_t count = 1;
	glob_t files;
	int result;

	snprintf(pattern, sizeof(pattern), "%.*s/*.spool", (int)(slash - process->path),
		 process->path);
	result = glob(pattern, 0, NULL, &files);
	if (result && result != GLOB_NOMATCH)
		return problem_set(problem, -EIO, "cannot list '%s'", pattern);
	*ret = calloc((result ? 0 : files.gl_pathc) + 1, sizeof(**ret));
	if (*ret)
		(*ret)[0] = process->pid;
	for (size_t i = 0; *ret && !result && i < files.gl_pathc; i++) {
		pid_t pid = ctl_live(files.gl_pathv[i]);

		if (pid && !ctl_holds(*ret, count, pid))
			(*ret)[count++] = pid;
	}
	if (!result)
		globfree(&files);
	*ret_count = count;
	return *ret ? 0 : problem_set(problem, -ENOMEM, "out of memory");
}
