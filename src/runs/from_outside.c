/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See from_outside.h.
 */
#include "runs/from_outside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/symbols/symbols.h"
#include "common/settings_value.h"
#include "common/time_units.h"
#include "console/message.h"
#include "outside/collector.h"

#define STACK_BYTES_MAX 61440u /* a record of the kernel has 64 KiB */
/* A goroutine's stack lies amid others in the heap, so that the whole piece is always copied. What
 * is deeper the kernel's chain of frame pointers has. */
#define STACK_BYTES_OF_GO 8192u

bool from_outside_is_wanted(const struct launch *launch, const struct target *target,
			    bool only_samples)
{
	return only_samples &&
	       (effective_setting_bool(launch->settings, SETTING_FROM_OUTSIDE) ||
		effective_setting_bool(launch->settings, SETTING_OFF_CPU) ||
		effective_setting_bool(launch->settings, SETTING_KERNEL_FRAMES) || target->is_go ||
		(target->obstacle[0] && target->can_be_sampled_from_outside));
}

static uint64_t read_duration_setting(const struct effective_settings *settings, enum setting_id id)
{
	int64_t duration = 0;

	setting_parse_duration(setting_slice_from_text(effective_setting_text(settings, id)),
			       &duration);
	return duration > 0 ? (uint64_t)duration : 0;
}

/* What libkymo alone can do and was asked for all the same. */
static void warn_of_what_is_left_out(const struct launch *launch)
{
	const struct effective_settings *settings = launch->settings;
	const char *why;
	static const enum setting_id inside_only[] = {
		SETTING_SAMPLING_REALTIME, SETTING_SAMPLING_OVERFLOW, SETTING_TRACE_PERIODS,
		SETTING_SAMPLING_TIDS,     SETTING_SAMPLING_COUNTERS, SETTING_SELECTED_REGIONS};

	if (effective_setting_bool(settings, SETTING_KERNEL_FRAMES) &&
	    !outside_collector_has_kernel_frames(launch->from_outside, &why))
		message_warning("frames of the kernel are not permitted (%s): stacks are the "
				"program's alone",
				why);
	why = outside_collector_find_off_cpu_gap(launch->from_outside);
	if (effective_setting_bool(settings, SETTING_OFF_CPU) && why)
		message_warning(
			outside_collector_has_off_cpu(launch->from_outside)
				? "who wakes threads is not known (%s): time that they wait "
				  "for a CPU after a wait counts as blocked"
				: "recording where threads block is not permitted (%s): "
				  "CPU time alone is sampled",
			why);
	for (size_t i = 0; i < sizeof(inside_only) / sizeof(inside_only[0]); i++) {
		if (!effective_setting_is_default(settings, inside_only[i]))
			message_warning("%s has no effect on programs that are sampled from "
					"outside",
					settings_table[inside_only[i]].name);
	}
}

/* The program's own environment, without anything of kymo's. */
static char **copy_environment(char **environment)
{
	size_t count = 0;
	char **copy;

	while (environment[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < count; i++) {
		copy[i] = strdup(environment[i]);
		if (!copy[i]) {
			launch_environment_destroy(copy);
			return NULL;
		}
	}
	return copy;
}

static void start_collector(void *context, pid_t pid)
{
	int error = outside_collector_start(context, pid);

	if (error)
		message_error("the program cannot be sampled: perf events of process %d cannot be "
			      "opened: %s",
			      (int)pid, strerror(-error));
}

static int create_collector(struct launch *launch, bool is_go, const struct outside_scope *scope,
			    struct problem *problem)
{
	const struct effective_settings *settings = launch->settings;
	const char *frequency = effective_setting_text(settings, SETTING_SAMPLING_CPUTIME_FREQ);
	struct outside_options options = {
		.period_ns = (uint64_t)((double)SECOND_NS / strtod(frequency, NULL)),
		.delay_ns = read_duration_setting(settings, SETTING_TRACE_DELAY),
		.duration_ns = read_duration_setting(settings, SETTING_TRACE_DURATION),
		.keep_file = symbolizer_keep_file_open,
		.with_kernel_frames = effective_setting_bool(settings, SETTING_KERNEL_FRAMES),
		.scope = scope,
		.with_off_cpu = effective_setting_bool(settings, SETTING_OFF_CPU),
		.stack_bytes_max = is_go ? STACK_BYTES_OF_GO : STACK_BYTES_MAX,
		.depth_max =
			(uint32_t)effective_setting_integer(settings, SETTING_SAMPLING_MAX_DEPTH)};

	return outside_collector_create(&options, &launch->from_outside, problem);
}

void from_outside_serve(struct launch *launch)
{
	const struct effective_settings *settings = launch->settings;

	if (!effective_setting_bool(settings, SETTING_USE_SAMPLING) ||
	    !effective_setting_bool(settings, SETTING_FOLLOW_CHILDREN) ||
	    create_collector(launch, false, NULL, NULL))
		return;
	if (outside_collector_set_directory(launch->from_outside, launch->session, NULL) ||
	    outside_collector_serve(launch->from_outside))
		from_outside_finish(launch);
}

int from_outside_check(struct launch *launch, struct problem *problem)
{
	return create_collector(launch, false, NULL, problem);
}

int from_outside_attach(struct launch *launch, pid_t pid, struct problem *problem)
{
	int error = outside_collector_set_directory(launch->from_outside, launch->session, problem);

	if (!error && (error = outside_collector_attach(launch->from_outside, pid)))
		problem_set(problem, error, "perf events of process %d cannot be opened: %s",
			    (int)pid, strerror(-error));
	if (!error)
		warn_of_what_is_left_out(launch);
	return error;
}

/* Where the settings are those of a run with libkymo, messages name the reason. */
static int add_reason(const struct target *target, struct problem *problem, int error)
{
	struct problem without = *problem;

	if (target->obstacle[0])
		problem_set(problem, error, "%s, and from outside: %s", target->obstacle,
			    without.text);
	return error;
}

int from_outside_prepare(struct launch *launch, const struct target *target, char ***ret,
			 struct problem *problem)
{
	int error = create_collector(launch, target->is_go, NULL, problem);

	if (error)
		return add_reason(target, problem, error);
	error = launch_create_directories(launch, problem);
	if (!error)
		error = outside_collector_set_directory(launch->from_outside, launch->session,
							problem);
	if (!error && !(*ret = copy_environment(environ)))
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (error) {
		from_outside_finish(launch);
		return error;
	}
	if (target->is_go && !target->obstacle[0] &&
	    !effective_setting_bool(launch->settings, SETTING_FROM_OUTSIDE))
		message_note("'%s' is a Go program: kymo samples it from outside", target->path);
	if (target->obstacle[0] && !effective_setting_bool(launch->settings, SETTING_FROM_OUTSIDE))
		message_note("%s; kymo samples it from outside", target->obstacle);
	warn_of_what_is_left_out(launch);
	launch->is_sampled_from_outside = true;
	supervise_set_before_exec(start_collector, launch->from_outside);
	return 0;
}

int from_outside_check_machine(struct launch *launch, const struct outside_scope *scope,
			       struct problem *problem)
{
	return create_collector(launch, false, scope, problem);
}

int from_outside_start_machine(struct launch *launch, struct problem *problem)
{
	int error = outside_collector_set_directory(launch->from_outside, launch->session, problem);

	if (!error && (error = outside_collector_start_machine(launch->from_outside)))
		problem_set(problem, error,
			    "perf events of the machine's CPUs cannot be opened: %s",
			    strerror(-error));
	if (!error)
		warn_of_what_is_left_out(launch);
	return error;
}

struct outside_result from_outside_finish(struct launch *launch)
{
	struct outside_result result = {0};

	supervise_set_before_exec(NULL, NULL);
	if (launch->from_outside)
		result = outside_collector_finish(launch->from_outside);
	launch->from_outside = NULL;
	return result;
}
