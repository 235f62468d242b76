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

#include "common/array.h"
#include "core/base/fork_state.h"
#include "wrappers/wrapped.h"
#include "wrappers/wrappers.h"

/* ---- marks: the original is jumped to (tail_calls.S) ---- */

#define DEFINE_MARK_WRAPPER(symbol, parameters, value)                                             \
	void wrapped_##symbol(void);                                                               \
	KYMO_FORK_CODE void *tail_##symbol parameters;                                             \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PROCESS);                                     \
	void *tail_##symbol parameters                                                             \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		if (region)                                                                        \
			wrapped_record_mark(region, value);                                        \
		return (void *)ORIGINAL(symbol);                                                   \
	}

DEFINE_MARK_WRAPPER(vfork, (void), wrapped_number_to_value("pid", kymo_process.pid))
DEFINE_MARK_WRAPPER(execve, (const char *path), wrapped_text_to_value("path", path))
DEFINE_MARK_WRAPPER(execv, (const char *path), wrapped_text_to_value("path", path))
DEFINE_MARK_WRAPPER(execvp, (const char *file), wrapped_text_to_value("path", file))
DEFINE_MARK_WRAPPER(execvpe, (const char *file), wrapped_text_to_value("path", file))
DEFINE_MARK_WRAPPER(execl, (const char *path), wrapped_text_to_value("path", path))
DEFINE_MARK_WRAPPER(execlp, (const char *file), wrapped_text_to_value("path", file))
DEFINE_MARK_WRAPPER(execle, (const char *path), wrapped_text_to_value("path", path))
DEFINE_MARK_WRAPPER(fexecve, (int fd), wrapped_number_to_value("fd", fd))
DEFINE_MARK_WRAPPER(execveat, (int directory, const char *path),
		    ((void)directory, wrapped_text_to_value("path", path)))
DEFINE_MARK_WRAPPER(exit, (int status), wrapped_number_to_value("status", status))
DEFINE_MARK_WRAPPER(_exit, (int status), wrapped_number_to_value("status", status))
DEFINE_MARK_WRAPPER(_Exit, (int status), wrapped_number_to_value("status", status))
DEFINE_MARK_WRAPPER(quick_exit, (int status), wrapped_number_to_value("status", status))
DEFINE_MARK_WRAPPER(abort, (void), wrapped_number_to_value("pid", kymo_process.pid))

/* ---- new processes ---- */

#define DEFINE_FORK_WRAPPER(symbol)                                                                \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PROCESS);                                     \
	KYMO_FORK_CODE static pid_t wrapped_##symbol(void)                                         \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		uint64_t begin;                                                                    \
		pid_t child;                                                                       \
		if (!region)                                                                       \
			return ORIGINAL(symbol)();                                                 \
		begin = ticks_now();                                                               \
		child = ORIGINAL(symbol)();                                                        \
		if (child)                                                                         \
			wrapped_record_whole_call(region, begin,                                   \
						  wrapped_number_to_value("pid", child),           \
						  child < 0 ? errno : 0);                          \
		return child;                                                                      \
	}

DEFINE_FORK_WRAPPER(fork)
DEFINE_FORK_WRAPPER(_Fork)

#define DEFINE_SPAWN_WRAPPER(symbol)                                                               \
	DEFINE_WRAPPED_FUNCTION_STATE(symbol, REGION_PROCESS);                                     \
	static int wrapped_##symbol(pid_t *pid, const char *path,                                  \
				    const posix_spawn_file_actions_t *actions,                     \
				    const posix_spawnattr_t *attributes, char *const arguments[],  \
				    char *const environment[])                                     \
	{                                                                                          \
		region_id region = wrapped_get_region_if_recording(&call_##symbol);                \
		int error;                                                                         \
		if (!region)                                                                       \
			return ORIGINAL(symbol)(pid, path, actions, attributes, arguments,         \
						environment);                                      \
		wrapped_begin_region(region, wrapped_text_to_value("path", path));                 \
		error = ORIGINAL(symbol)(pid, path, actions, attributes, arguments, environment);  \
		wrapped_end_region_with_error(region, error);                                      \
		return error;                                                                      \
	}

DEFINE_SPAWN_WRAPPER(posix_spawn)
DEFINE_SPAWN_WRAPPER(posix_spawnp)

/* ---- calls that come back ---- */

#define DEFINE_CHILD_PROCESS_CALL_WRAPPER(type, symbol, value, name, parameters, arguments)        \
	DEFINE_RESULT_WRAPPER(type, symbol, #symbol, REGION_PROCESS, value, name, parameters,      \
			      arguments)

DEFINE_CHILD_PROCESS_CALL_WRAPPER(int, system, wrapped_text_to_value("command", command), "status",
				  PARENTHESIZED_PARAMETERS(const char *command),
				  PARENTHESIZED_ARGUMENTS(command))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(FILE *, popen, wrapped_text_to_value("command", command),
				  "stream",
				  PARENTHESIZED_PARAMETERS(const char *command, const char *mode),
				  PARENTHESIZED_ARGUMENTS(command, mode))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(int, pclose, wrapped_address_to_value("stream", stream), "status",
				  PARENTHESIZED_PARAMETERS(FILE *stream),
				  PARENTHESIZED_ARGUMENTS(stream))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(pid_t, wait, wrapped_number_to_value("pid", -1), "pid",
				  PARENTHESIZED_PARAMETERS(int *status),
				  PARENTHESIZED_ARGUMENTS(status))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(pid_t, waitpid, wrapped_number_to_value("pid", pid), "pid",
				  PARENTHESIZED_PARAMETERS(pid_t pid, int *status, int options),
				  PARENTHESIZED_ARGUMENTS(pid, status, options))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(pid_t, wait3, wrapped_number_to_value("pid", -1), "pid",
				  PARENTHESIZED_PARAMETERS(int *status, int options,
							   struct rusage *usage),
				  PARENTHESIZED_ARGUMENTS(status, options, usage))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(pid_t, wait4, wrapped_number_to_value("pid", pid), "pid",
				  PARENTHESIZED_PARAMETERS(pid_t pid, int *status, int options,
							   struct rusage *usage),
				  PARENTHESIZED_ARGUMENTS(pid, status, options, usage))
DEFINE_CHILD_PROCESS_CALL_WRAPPER(int, waitid, wrapped_number_to_value("pid", id), "result",
				  PARENTHESIZED_PARAMETERS(idtype_t type, id_t id,
							   siginfo_t *information, int options),
				  PARENTHESIZED_ARGUMENTS(type, id, information, options))

int wrappers_processes_add(const struct wrapper_options *options)
{
	static struct got_wrapper rows[] = {
		WRAPPER_TABLE_ROW(vfork),        WRAPPER_TABLE_ROW(execve),
		WRAPPER_TABLE_ROW(execv),        WRAPPER_TABLE_ROW(execvp),
		WRAPPER_TABLE_ROW(execvpe),      WRAPPER_TABLE_ROW(execl),
		WRAPPER_TABLE_ROW(execlp),       WRAPPER_TABLE_ROW(execle),
		WRAPPER_TABLE_ROW(fexecve),      WRAPPER_TABLE_ROW(execveat),
		WRAPPER_TABLE_ROW(exit),         WRAPPER_TABLE_ROW(_exit),
		WRAPPER_TABLE_ROW(_Exit),        WRAPPER_TABLE_ROW(quick_exit),
		WRAPPER_TABLE_ROW(abort),        WRAPPER_TABLE_ROW(fork),
		WRAPPER_TABLE_ROW(_Fork),        WRAPPER_TABLE_ROW(posix_spawn),
		WRAPPER_TABLE_ROW(posix_spawnp), WRAPPER_TABLE_ROW(system),
		WRAPPER_TABLE_ROW(popen),        WRAPPER_TABLE_ROW(pclose),
		WRAPPER_TABLE_ROW(wait),         WRAPPER_TABLE_ROW(waitpid),
		WRAPPER_TABLE_ROW(wait3),        WRAPPER_TABLE_ROW(wait4),
		WRAPPER_TABLE_ROW(waitid)};

	return options->wrap_processes ? got_add_wrappers(rows, ARRAY_SIZE(rows)) : 0;
}
