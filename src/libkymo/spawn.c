/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Wrappers of posix_spawn: libc clones and executes inside, past our exec, so the child's
 * environment is completed here. Signals are libc's care: it blocks all of them until the child has
 * executed (sysdeps/unix/sysv/linux/spawni.c).
 */
#include <errno.h>
#include <spawn.h>
#include <unistd.h>

#include "common/syscalls.h"
#include "core/notices.h"
#include "core/runtime.h"
#include "libkymo/exec_target.h"
#include "libkymo/real.h"
#include "libkymo/session_environment.h"

typedef __typeof__(&posix_spawn) spawn_function;

static int spawn(spawn_function real, pid_t *pid, const char *path, bool by_name,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
		 char *const arguments[], char *const environment[])
{
	struct session_list list = {.environment = environment};
	struct exec_target target = {.found = false};
	char space[PATH_MAX];
	pid_t child = 0;
	int error;

	if (kymo_runtime.sealed && (!kymo_thread || kymo_thread->sealed))
		return real(pid, path, actions, attributes, arguments, environment);
	session_list_make(&list, environment);
	error = real(&child, path, actions, attributes, arguments, list.environment);
	if (error == E2BIG && list.completed)
		error = real(&child, path, actions, attributes, arguments, environment);
	session_list_destroy(&list);
	if (error)
		return error;
	if (pid)
		*pid = child;
	if (runtime_active() && kymo_runtime.options.follow_children)
		target = by_name ? exec_target_search(path, space) : exec_target_look(path);
	if (target.obstacle)
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_NOT_FOLLOWED, (uint64_t)child,
			     target.path, target.obstacle);
	return 0;
}

EXPORTED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const arguments[],
			 char *const environment[])
{
	return spawn(REAL(posix_spawn), pid, path, false, actions, attributes, arguments,
		     environment);
}

EXPORTED int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const arguments[],
			  char *const environment[])
{
	return spawn(REAL(posix_spawnp), pid, file, true, actions, attributes, arguments,
		     environment);
}
