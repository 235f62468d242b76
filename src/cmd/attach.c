/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo attach`: profiles a process that runs already, for a while, and leaves it as it was.
 *
 * How a process is attached to is in runs/attach.c.
 */
#include <stddef.h>
#include <string.h>

#include "cmd/commands.h"
#include "common/array.h"
#include "console/message.h"
#include "runs/attach.h"
#include "settings/sampler_options.h"

struct attach_option_values {
	const char *pid;
};

static bool attach_accepts_setting(enum setting_id id)
{
	return settings_table[id].visibility != SETTING_INTERNAL &&
	       strcmp(settings_table[id].category, "instrument") &&
	       strcmp(settings_table[id].category, "counters") &&
	       strcmp(settings_table[id].category, "causal");
}

static const struct extra_option attach_extra_options[] = {
	{.name = "pid",
	 .letter = 'p',
	 .argument = OPTION_ARGUMENT_REQUIRED,
	 .metavar = "PID",
	 .apply = option_set_text,
	 .offset = offsetof(struct attach_option_values, pid),
	 .help = "The process to attach to."},
	OPTION_CPUTIME_INITIALIZER,
	OPTION_REALTIME_INITIALIZER,
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static const struct options_grammar attach_grammar = {
	.command = "attach",
	.extra_options = attach_extra_options,
	.extra_option_count = ARRAY_SIZE(attach_extra_options),
	.accepts_setting = attach_accepts_setting,
};

static bool attach_is_region_setting(enum setting_id id)
{
	const char *category = settings_table[id].category;

	if (id == SETTING_TRACE_MEMORY || id == SETTING_MEMORY_SITE_DEPTH)
		return false;
	return !strcmp(category, "wrappers") || !strcmp(category, "regions") ||
	       id == SETTING_SELECTED_REGIONS || id == SETTING_ENABLE_CATEGORIES ||
	       id == SETTING_DISABLE_CATEGORIES;
}

/* Attached processes are sampled, and their allocations are counted; a warning says so to who asks
 * for regions as well. What a file asks for is meant for other commands, too. */
static void attach_warn_of_region_settings(const struct effective_settings *settings)
{
	for (enum setting_id id = 0; id < SETTING_COUNT; id++) {
		const struct effective_value *value = &settings->values[id];
		bool off = settings_table[id].type == SETTING_BOOL &&
			   !effective_setting_bool(settings, id);

		if (attach_is_region_setting(id) && value->origin > ORIGIN_CONFIG && !off)
			message_warning("%s has no effect: kymo attach takes samples and counts "
					"allocations, and records no regions",
					value->source);
	}
}

static int attach_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct attach_option_values options = {0};
	struct parsed_command_line result = {.context = &options};
	int status = command_parse_and_read_settings(&attach_command_description, arguments, count,
						     &settings, &result);

	if (status != COMMAND_CONTINUE)
		return status;
	if (result.operand_count || !options.pid) {
		message_error("which process? kymo attach -p PID [options] (to run a program under "
			      "kymo: kymo sample -- PROGRAM)");
		status = EXIT_KYMO_FAILED;
	} else {
		attach_warn_of_region_settings(&settings);
		status = attach_and_profile_process(options.pid, &settings, NULL);
	}
	effective_deinit(&settings);
	return status;
}

const struct command attach_command_description = {
	.name = "attach",
	.summary = "profile a running process",
	.synopsis = "attach -p PID [options]",
	.text = "Loads kymo's library into a running process and samples it until --duration is "
		"over, you press Ctrl-C, or the process ends. Afterwards the process runs as "
		"before; only the library stays in its memory, doing nothing. You can attach any "
		"number of times.\n"
		"\n"
		"The process needs no preparation, but the system must permit you to trace it (the "
		"same user and kernel.yama.ptrace_scope=0, or root). A process that no library can "
		"be loaded into (statically linked, musl, Go, another container) is sampled from "
		"outside, by perf events; --from-outside asks for it. Children that it forks while "
		"kymo is "
		"attached are profiled as well; programs that it executes are not. With "
		"--trace-memory kymo counts allocations from then on; no regions are recorded.",
	.examples = "kymo attach -p 1234 -d 10             profile it for 10 seconds\n"
		    "kymo attach -p 1234 --realtime        show where it waits, until Ctrl-C\n"
		    "kymo attach -p 1234 --trace-memory    count what it allocates, until Ctrl-C\n",
	.grammar = &attach_grammar,
	.run = attach_run_command,
};
