/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of what makes, waits for, replaces and ends processes. Calls that do not come back
 * (exec, exit) or come back twice (vfork) are marks; fork is a whole call of the parent's, so that
 * no region is open in the child that began in another process.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

/* ---- marks: the original is jumped to (tail_calls.S) ---- */

#define WRAPPED_MARK(symbol, parameters, value)                                                    \
	void wrapped_##symbol(void);                                                               \
	void *tail_##symbol parameters;                                                            \
	WRAPPED_CALL(symbol, REGION_PROCESS);                                                      \
	void *tail_##symbol parameters                                                             \
	{                                                                                          \
		int error = errno;                                                                 \
		wrapped_mark(&call_##symbol, value);                                               \
		errno = error;                                                                     \
		return (void *)ORIGINAL(symbol);                                                   \
	}

WRAPPED_MARK(vfork, (void), wrapped_number("pid", kymo_runtime.pid))
WRAPPED_MARK(execve, (const char *path), wrapped_text("path", path))
WRAPPED_MARK(execv, (const char *path), wrapped_text("path", path))
WRAPPED_MARK(execvp, (const char *file), wrapped_text("path", file))
WRAPPED_MARK(execvpe, (const char *file), wrapped_text("path", file))
WRAPPED_MARK(execl, (const char *path), wrapped_text("path", path))
WRAPPED_MARK(execlp, (const char *file), wrapped_text("path", file))
WRAPPED_MARK(execle, (const char *path), wrapped_text("path", path))
WRAPPED_MARK(fexecve, (int fd), wrapped_number("fd", fd))
WRAPPED_MARK(execveat, (int directory, const char *path),
	     ((void)directory, wrapped_text("path", path)))
WRAPPED_MARK(exit, (int status), wrapped_number("status", status))
WRAPPED_MARK(_exit, (int status), wrapped_number("status", status))
WRAPPED_MARK(_Exit, (int status), wrapped_number("status", status))
WRAPPED_MARK(quick_exit, (int status), wrapped_number("status", status))
WRAPPED_MARK(abort, (void), wrapped_number("pid", kymo_runtime.pid))

/* ---- new processes ---- */

#define WRAPPED_FORK(symbol)                                                                       \
	WRAPPED_CALL(symbol, REGION_PROCESS);                                                      \
	static pid_t wrapped_##symbol(void)                                                        \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		uint64_t begin;                                                                    \
		pid_t child;                                                                       \
		if (!region)                                                                       \
			return ORIGINAL(symbol)();                                                 \
		begin = ticks_now();                                                               \
		child = ORIGINAL(symbol)();                                                        \
		if (child)                                                                         \
			wrapped_whole(region, begin, wrapped_number("pid", child),                 \
				      child < 0 ? errno : 0);                                      \
		return child;                                                                      \
	}

WRAPPED_FORK(fork)
WRAPPED_FORK(_Fork)

#define WRAPPED_SPAWN(symbol)                                                                      \
	WRAPPED_CALL(symbol, REGION_PROCESS);                                                      \
	static int wrapped_##symbol(pid_t *pid, const char *path,                                  \
				    const posix_spawn_file_actions_t *actions,                     \
				    const posix_spawnattr_t *attributes, char *const arguments[],  \
				    char *const environment[])                                     \
	{                                                                                          \
		region_id region = wrapped_recording(&call_##symbol);                              \
		int error;                                                                         \
		if (!region)                                                                       \
			return ORIGINAL(symbol)(pid, path, actions, attributes, arguments,         \
						environment);                                      \
		wrapped_begin(region, wrapped_text("path", path));                                 \
		error = ORIGINAL(symbol)(pid, path, actions, attributes, arguments, environment);  \
		wrapped_end_error(region, error);                                                  \
		return error;                                                                      \
	}

WRAPPED_SPAWN(posix_spawn)
WRAPPED_SPAWN(posix_spawnp)

/* ---- calls that come back ---- */

#define WRAPPED_CHILD(type, symbol, value, name, parameters, arguments)                            \
	WRAPPED_RESULT(type, symbol, #symbol, REGION_PROCESS, value, name, parameters, arguments)

WRAPPED_CHILD(int, system, wrapped_text("command", command), "status",
	      PARAMETERS(const char *command), ARGUMENTS(command))
WRAPPED_CHILD(FILE *, popen, wrapped_text("command", command), "stream",
	      PARAMETERS(const char *command, const char *mode), ARGUMENTS(command, mode))
WRAPPED_CHILD(int, pclose, wrapped_address("stream", stream), "status", PARAMETERS(FILE *stream),
	      ARGUMENTS(stream))
WRAPPED_CHILD(pid_t, wait, wrapped_number("pid", -1), "pid", PARAMETERS(int *status),
	      ARGUMENTS(status))
WRAPPED_CHILD(pid_t, waitpid, wrapped_number("pid", pid), "pid",
	      PARAMETERS(pid_t pid, int *status, int options), ARGUMENTS(pid, status, options))
WRAPPED_CHILD(pid_t, wait3, wrapped_number("pid", -1), "pid",
	      PARAMETERS(int *status, int options, struct rusage *usage),
	      ARGUMENTS(status, options, usage))
WRAPPED_CHILD(pid_t, wait4, wrapped_number("pid", pid), "pid",
	      PARAMETERS(pid_t pid, int *status, int options, struct rusage *usage),
	      ARGUMENTS(pid, status, options, usage))
WRAPPED_CHILD(int, waitid, wrapped_number("pid", id), "result",
	      PARAMETERS(idtype_t type, id_t id, siginfo_t *information, int options),
	      ARGUMENTS(type, id, information, options))

int wrappers_processes_add(const struct options_wrappers *options)
{
	static struct got_wrapper rows[] = {
		WRAPPED_ROW(vfork),        WRAPPED_ROW(execve),     WRAPPED_ROW(execv),
		WRAPPED_ROW(execvp),       WRAPPED_ROW(execvpe),    WRAPPED_ROW(execl),
		WRAPPED_ROW(execlp),       WRAPPED_ROW(execle),     WRAPPED_ROW(fexecve),
		WRAPPED_ROW(execveat),     WRAPPED_ROW(exit),       WRAPPED_ROW(_exit),
		WRAPPED_ROW(_Exit),        WRAPPED_ROW(quick_exit), WRAPPED_ROW(abort),
		WRAPPED_ROW(fork),         WRAPPED_ROW(_Fork),      WRAPPED_ROW(posix_spawn),
		WRAPPED_ROW(posix_spawnp), WRAPPED_ROW(system),     WRAPPED_ROW(popen),
		WRAPPED_ROW(pclose),       WRAPPED_ROW(wait),       WRAPPED_ROW(waitpid),
		WRAPPED_ROW(wait3),        WRAPPED_ROW(wait4),      WRAPPED_ROW(waitid)};

	return options->processes ? got_add(rows, sizeof(rows) / sizeof(rows[0])) : 0;
}
