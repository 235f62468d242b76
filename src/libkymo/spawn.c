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
#include "core/base/own_work.h"
#include "core/notices.h"
#include "core/runtime.h"
#include "libkymo/ask_outside.h"
#include "libkymo/dormant.h"
#include "libkymo/exec_target.h"
#include "libkymo/real.h"
#include "libkymo/session_environment.h"
#include "libkymo/session_reach.h"

typedef __typeof__(&posix_spawn) posix_spawn_function_pointer;

static struct runtime *const collector = &kymo_runtime;

static struct exec_target find_spawn_target(const char *path, bool by_name, char space[PATH_MAX])
{
	struct exec_target target = {.found = false};

	if ((runtime_is_active() || dormant_is_this_process()) &&
	    collector->options.follow_children)
		target = by_name ? exec_target_find_in_search_path(path, space)
				 : exec_target_examine(path);
	if (target.found && !target.profiling_obstacle_text)
		target.profiling_obstacle_text = session_reach_find_obstacle(collector);
	return target;
}

static void record_spawned_child(const struct exec_target *target, pid_t child)
{
	const struct options *options = &collector->options;

	if (!target->profiling_obstacle_text ||
	    (target->can_be_sampled_from_outside && options_want_sampling(options) &&
	     ask_outside_for_child(options->spool_directory, child)))
		return;
	if (dormant_is_this_process())
		dormant_write_not_followed_notice(child, target->path,
						  target->profiling_obstacle_text);
	else
		notices_post(&collector->background, SPOOL_NOTICE_NOT_FOLLOWED, (uint64_t)child,
			     target->path, target->profiling_obstacle_text);
}

static int spawn_with_session(posix_spawn_function_pointer real, pid_t *pid, const char *path,
			      bool by_name, const posix_spawn_file_actions_t *actions,
			      const posix_spawnattr_t *attributes, char *const arguments[],
			      char *const environment[])
{
	struct session_environment_list list = {.environment = environment};
	char space[PATH_MAX];
	struct exec_target target;
	uint64_t begun_ns;
	pid_t child = 0;
	int error;

	if (is_calling_thread_off_limits())
		return real(pid, path, actions, attributes, arguments, environment);
	dormant_install_pending_wrappers();
	begun_ns = own_work_read_clock_ns();
	target = find_spawn_target(path, by_name, space);
	if (target.can_be_sampled_from_outside && options_want_sampling(&collector->options) &&
	    ask_outside_if_there(collector->options.spool_directory))
		target.must_not_preload = true;
	if (target.must_not_preload)
		session_environment_list_init_without(&list, environment);
	else
		session_environment_list_init(&list, environment);
	own_work_add_since(begun_ns);
	error = real(&child, path, actions, attributes, arguments, list.environment);
	if (error == E2BIG && list.is_completed)
		error = real(&child, path, actions, attributes, arguments, environment);
	begun_ns = own_work_read_clock_ns();
	session_environment_list_deinit(&list);
	if (!error) {
		if (pid)
			*pid = child;
		record_spawned_child(&target, child);
	}
	own_work_add_since(begun_ns);
	return error;
}

EXPORTED int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			 const posix_spawnattr_t *attributes, char *const arguments[],
			 char *const environment[])
{
	return spawn_with_session(REAL(posix_spawn), pid, path, false, actions, attributes,
				  arguments, environment);
}

EXPORTED int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attributes, char *const arguments[],
			  char *const environment[])
{
	return spawn_with_session(REAL(posix_spawnp), pid, file, true, actions, attributes,
				  arguments, environment);
}
