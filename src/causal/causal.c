/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal.h: whether a process takes part, from when and until when.
 */
#include "causal/causal.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "causal/map.h"
#include "causal/state.h"
#include "common/syscalls.h"
#include "core/background_work.h"
#include "core/process/scheduling.h"

#define CAUSAL_VARIABLE_NAME_AND_EQUALS "KYMO_CAUSAL="
#define CONTROL_FILE_NAME               "/control"
#define PATH_SIZE                       4096

struct causal_control *_Atomic kymo_causal;
static struct causal_control *causal_control_mapping;

static const char *find_causal_directory_in_environment(char *const *environment)
{
	for (; environment && *environment; environment++) {
		if (!strncmp(*environment, CAUSAL_VARIABLE_NAME_AND_EQUALS,
			     sizeof(CAUSAL_VARIABLE_NAME_AND_EQUALS) - 1))
			return *environment + sizeof(CAUSAL_VARIABLE_NAME_AND_EQUALS) - 1;
	}
	return "";
}

bool causal_is_requested_in_environment(char *const *environment)
{
	return *find_causal_directory_in_environment(environment);
}

/* One that is as this process understands it, and that goes by the same clock. */
static bool control_file_matches_process(const struct causal_control *control)
{
	return control->magic == CAUSAL_MAGIC && control->version == CAUSAL_VERSION &&
	       control->size_of_header == sizeof(*control) &&
	       control->ticks_per_second >= 1000000 && control->ticks_are_ns == kymo_ticks_are_ns;
}

static struct causal_control *map_control_file(const char *directory)
{
	size_t length = strlen(directory);
	struct causal_control *control = NULL;
	char path[PATH_SIZE];
	struct stat status;
	int fd;

	if (length + sizeof(CONTROL_FILE_NAME) > sizeof(path))
		return NULL;
	memcpy(path, directory, length);
	memcpy(path + length, CONTROL_FILE_NAME, sizeof(CONTROL_FILE_NAME));
	fd = (int)sys_open(path, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		return NULL;
	if (!sys_call2(SYS_fstat, fd, (long)&status) &&
	    status.st_size >= (off_t)sizeof(struct causal_control))
		control =
			sys_mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	sys_close(fd);
	if (!control || sys_mmap_failed(control))
		return NULL;
	if (control_file_matches_process(control))
		return control;
	sys_munmap(control, sizeof(*control));
	return NULL;
}

/* The session's clock is as good as the controller's measure of it, the same for all processes. */
void causal_join_session_if_requested(struct runtime *runtime)
{
	const char *directory = find_causal_directory_in_environment(runtime->environment);
	struct causal_control *control = *directory ? map_control_file(directory) : NULL;

	if (!control)
		return;
	causal_set_tick_constants(control->ticks_per_second);
	atomic_fetch_add(&control->processes, 1);
	causal_control_mapping = control;
	atomic_store(&kymo_causal, control);
	causal_map_start_requests(runtime, directory);
	atomic_store(&runtime->sampler.sampled, causal_attribute_sample);
	atomic_store(&runtime->sampler.settle, causal_pay_delay_of_sampled_thread);
}

static int causal_hook_ignore_start(struct runtime *runtime)
{
	(void)runtime;
	return 0;
}

/* Who joins it waits until its delay is applied. */
static void causal_hook_thread_end(void)
{
	if (causal_is_active())
		causal_pay_delay_of_ending_thread();
}

/* Its state lies where that of the next thread with its block will. */
static void causal_hook_ignore_thread_gone(struct thread *thread)
{
	(void)thread;
}

/* Or the runtime goes on after a pause. */
static void causal_hook_forked(void)
{
	if (!causal_control_mapping)
		return;
	atomic_store(&kymo_causal, causal_control_mapping);
	atomic_fetch_add(&causal_control_mapping->processes, 1);
	causal_carry_state_over_fork();
	causal_map_reset_after_fork();
}

/* The file stays mapped: threads may be on their way through it. */
static void causal_hook_detached(void)
{
	struct causal_control *control = atomic_exchange(&kymo_causal, NULL);

	if (control)
		atomic_fetch_sub(&control->processes, 1);
}

/* Where samples are kept as well, whoever looks at them wants all. */
static void set_sampling_reduced_in_cooldown(struct runtime *runtime)
{
	bool resting = atomic_load_explicit(&causal_control_mapping->resting, memory_order_relaxed);

	if (!runtime->options.regions.trace && !runtime->options.regions.profile)
		background_work_set_sampling_reduced(runtime, resting);
}

/* A thread has its samples from when the background thread has seen it: beside real-time threads on
 * all processors, or in the time slices of others, that would be after the ends of short ones. */
static void let_background_thread_in_soon(void)
{
	static int helper_that_asked;
	int helper = sys_getpid();

	if (helper_that_asked == helper)
		return;
	helper_that_asked = helper;
	scheduling_request_prompt_turns(true);
}

static void causal_hook_at_background_round(struct runtime *runtime, bool last)
{
	if (last) {
		causal_hook_detached();
	} else if (causal_is_active()) {
		let_background_thread_in_soon();
		causal_map_request_and_publish(runtime);
		set_sampling_reduced_in_cooldown(runtime);
	}
}

const struct runtime_hooks causal_hook_table = {
	.start = causal_hook_ignore_start,
	.on_thread_end = causal_hook_thread_end,
	.on_thread_gone_silently = causal_hook_ignore_thread_gone,
	.forked = causal_hook_forked,
	.on_detach_process = causal_hook_detached,
	.round = causal_hook_at_background_round,
};
