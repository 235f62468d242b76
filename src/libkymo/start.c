/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library's constructor and destructor, and what has to be known about forks.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "causal/causal.h"
#include "common/go_note.h"
#include "core/base/fork_state.h"
#include "core/base/own_work.h"
#include "core/helper.h"
#include "core/notices.h"
#include "core/process/program_timers.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "libkymo/dormant.h"
#include "libkymo/find_object.h"
#include "libkymo/hooks.h"
#include "libkymo/opened.h"
#include "libkymo/own_session.h"
#include "libkymo/real.h"
#include "libkymo/seccomp.h"
#include "libkymo/session_environment.h"
#include "libkymo/session_reach.h"
#include "python/calls.h"
#include "wrappers/got/got.h"
#include "wrappers/wrappers.h"

#define DEVICE_RECORDING_SKIPPED_NOTICE_TEXT                                                       \
	" observes devices itself: kymo records nothing on devices below it"

/* It may have become one that adopts orphans by a system call that nobody saw. */
static void record_subreaper_before_fork(void)
{
	uint64_t begun_ns;

	dormant_install_pending_wrappers();
	if ((!runtime_is_active() && !dormant_is_this_process()) || kymo_process.in_seccomp)
		return;
	begun_ns = own_work_read_clock_ns();
	helper_record_if_program_is_subreaper(kymo_runtime.options.spool_directory);
	own_work_add_since(begun_ns);
}

KYMO_FORK_CODE static void handle_fork_in_parent(void)
{
	session_reach_warn_after_fork(&kymo_runtime);
}

KYMO_FORK_CODE static void handle_fork_in_child(void)
{
	uint64_t begun_ns;
	bool measured;

	seccomp_forget_call_dispatch_in_child();
	measured = !process_has_seccomp_thread();
	begun_ns = measured ? own_work_read_clock_ns() : 0;

	own_work_reset_in_child(atomic_load(&kymo_process.state) == RUNTIME_DORMANT);
	if (!dormant_begin_in_forked_child())
		runtime_restart_in_forked_child();
	if (measured)
		own_work_add_since(begun_ns);
}

/* The calls that we need to see come first: what records them calls on to those. */
static void install_wrappers(struct runtime *runtime)
{
	bool wrapped;

	if (runtime->opened)
		opened_libkymo_add_wrappers();
	wrapped = wrappers_add_all(runtime);
	if (runtime->opened || wrapped)
		got_scan_and_rewrite();
}

__attribute__((destructor)) static void finish_at_exit(void)
{
	bool is_slow = runtime_is_active() && !is_calling_thread_off_limits();
	uint64_t held = is_slow ? program_timers_hold_deadly_signals() : 0;

	dormant_write_process_end();
	runtime_finish();
	program_timers_release_signals(held);
}

/* In a program with more rights than its caller (set-user-id, capabilities: AT_SECURE of
 * getauxval(3)) the environment is the caller's and names nothing. */
static char **get_trusted_environment(char **environment)
{
	static char *nothing[] = {NULL};

	return getauxval(AT_SECURE) ? nothing : environment;
}

/* Its own handlers would get kymo's signals, and end it (common/go_note.h). */
static bool program_is_go(void)
{
	const Elf64_Phdr *segments = (const Elf64_Phdr *)getauxval(AT_PHDR);
	uint64_t count = segments ? getauxval(AT_PHNUM) : 0, bias = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (segments[i].p_type == PT_PHDR)
			bias = (uint64_t)(uintptr_t)segments - segments[i].p_vaddr;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (segments[i].p_type == PT_NOTE && segments[i].p_flags & PF_R &&
		    go_note_is_among((const void *)(uintptr_t)(segments[i].p_vaddr + bias),
				     segments[i].p_memsz))
			return true;
	}
	return false;
}

/* The file's name in the first argument; "" where there is none. */
static const char *find_program_name(int count, char *const *arguments)
{
	const char *path = count > 0 && arguments && arguments[0] ? arguments[0] : "";
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* True: it is dormant, and whatever wakes it installs the wrappers. That may be at any moment. */
static bool begin(struct runtime *runtime, char **arguments)
{
	if (dormant_begin_dormancy_if_allowed(runtime, arguments, install_wrappers))
		return true;
	runtime_begin_collection(runtime,
				 &(struct runtime_start_conditions){
					 .stack_bounds = runtime_find_main_stack_bounds()});
	return false;
}

static void install_wrappers_and_instrumentation(struct runtime *runtime)
{
	causal_join_session_if_requested(runtime);
	install_wrappers(runtime);
	if (causal_is_active())
		instrument_set_call_listeners(causal_handle_function_entry,
					      causal_handle_function_exit);
	instrument_start(runtime->attached);
	python_calls_start(runtime);
	if (runtime->options.python_calls.on)
		wrappers_loader_set_listener(python_calls_look_at_objects);
}

static void start_at_load(int count, char **arguments, char **environment)
{
	struct runtime *runtime = &kymo_runtime;
	const char *program = find_program_name(count, arguments);
	uint64_t begun_ns;
	bool wanted, injected, begins_dormant = false;

	environment = get_trusted_environment(environment);
	runtime->hooks = &libkymo_hook_table;
	runtime->opened = opened_libkymo_was_loaded_by_dlopen();
	real_find_all_functions();
	find_object_resolve_real_function();
	wanted = runtime_read_options(
		runtime,
		session_environment_save(own_session_add_to_environment_if_wanted(environment)));
	if (wanted && options_want_sampling(&runtime->options) && program_is_go())
		wanted = runtime->options.enabled = false;
	/* What was done so far is done where kymo is off as well: it is part of what loading costs.
	 */
	begun_ns = own_work_read_clock_ns();
	if (wanted)
		begins_dormant = begin(runtime, arguments);
	session_environment_set_child_inheritance(&runtime->options, environment);
	injected = session_drop_cuda_injections_if_gpu_tool(program, environment);
	if (!runtime_is_active() && !dormant_is_this_process())
		return;
	if (injected && dormant_is_this_process())
		dormant_write_process_notice(SPOOL_NOTICE_CONFLICT, 0, program,
					     DEVICE_RECORDING_SKIPPED_NOTICE_TEXT);
	else if (injected)
		notices_post(&runtime->background, SPOOL_NOTICE_CONFLICT, 0, program,
			     DEVICE_RECORDING_SKIPPED_NOTICE_TEXT);
	session_reach_remember_user();
	pthread_atfork(record_subreaper_before_fork, handle_fork_in_parent, handle_fork_in_child);
	/* Without memory for it, an end by quick_exit() lacks what was only counted. */
	(void)at_quick_exit(finish_at_exit);
	if (!begins_dormant)
		install_wrappers_and_instrumentation(runtime);
	own_work_add_since(begun_ns);
}

/* The constructor stands in the loader's table itself (System V ABI, "Initialization and
 * Termination Functions"): the loader passes it the environment. GCC's whole-program optimisation
 * merges functions with the attribute into one that passes nothing on. */
__attribute__((section(".init_array"),
	       used)) static void (*init_array_entry)(int, char **, char **) = start_at_load;
