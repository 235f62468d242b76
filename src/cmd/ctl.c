/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo ctl`: starts and stops collection in processes that run under kymo, and asks how they are.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/session.h"
#include "cmd/commands.h"
#include "common/array.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "launch/control_process.h"
#include "output/format.h"
#include "settings/listing.h"
#include "settings/suggest.h"

struct ctl_option_values {
	bool tree;
};

static const struct extra_option ctl_extra_options[] = {
	{.name = "tree",
	 .apply = option_set_flag,
	 .offset = offsetof(struct ctl_option_values, tree),
	 .help = "All processes of the session that PID belongs to."},
	OPTION_QUIET_INITIALIZER,
	OPTION_VERBOSE_INITIALIZER,
	OPTION_HELP_INITIALIZER,
};

static bool ctl_accepts_setting(enum setting_id id)
{
	return id == SETTING_COLOR;
}

static const struct options_grammar ctl_grammar = {
	.command = "ctl",
	.extra_options = ctl_extra_options,
	.extra_option_count = ARRAY_SIZE(ctl_extra_options),
	.accepts_setting = ctl_accepts_setting,
};

/* What a word asks for; 0: to look only. */
static const struct {
	const char *word;
	uint32_t control_command;
} ctl_actions[] = {{"start", SPOOL_CONTROL_START},
		   {"stop", SPOOL_CONTROL_STOP},
		   {"flush", SPOOL_CONTROL_FLUSH},
		   {"status", 0}};

enum { CTL_ACTION_COUNT = ARRAY_SIZE(ctl_actions) };

static void ctl_print_losses(const struct spool_file_header *header)
{
	const char *joint = "  lost:";

	for (unsigned i = 0; i < SPOOL_LOSS_COUNT; i++) {
		if (!header->losses[i])
			continue;
		printf("%s %s %s", joint, quantity_from_count(header->losses[i]).text,
		       spool_loss_name((enum spool_loss)i));
		joint = ",";
	}
	if (joint[0] == ',')
		putchar('\n');
}

static void ctl_print_status(const struct ctl_process *process)
{
	const struct spool_file_header *header = &process->header;

	printf("%ld (", (long)process->pid);
	listing_print_sanitized_text(stdout, process->name);
	printf("): %s\n", header->collecting ? "collecting" : "not collecting");
	printf("  %s samples, %s region events\n", quantity_from_count(header->samples).text,
	       quantity_from_count(header->region_events).text);
	ctl_print_losses(header);
	printf("  %s in ", quantity_from_bytes(header->file_size).text);
	listing_print_sanitized_text(stdout, process->path);
	putchar('\n');
}

static int ctl_send_command_or_print_status(pid_t pid, uint32_t command, struct problem *problem)
{
	struct ctl_process process;
	int error = ctl_process_open_spool_file(pid, &process, problem);

	if (!error && command)
		error = ctl_process_write_command_and_wait(&process, (enum spool_control)command,
							   problem);
	if (!error && !command)
		ctl_print_status(&process);
	ctl_process_close_spool_file(&process);
	return error;
}

/* A process that ends while the others are asked is no failure. */
static int ctl_send_command_or_print_session_status(pid_t pid, uint32_t command,
						    struct problem *problem)
{
	struct ctl_process process;
	pid_t *pids = NULL;
	size_t count = 0;
	int error = ctl_process_open_spool_file(pid, &process, problem), failed = 0;

	if (!error)
		error = ctl_list_session_processes(&process, &pids, &count, problem);
	ctl_process_close_spool_file(&process);
	for (size_t i = 0; !error && i < count; i++) {
		struct problem one;
		int result = ctl_send_command_or_print_status(pids[i], command, &one);

		if (!result || (i && (result == -ESRCH || result == -ENOENT)))
			continue;
		if (failed)
			message_error("%s", problem->text);
		*problem = one;
		failed = result;
	}
	free(pids);
	return error ? error : failed;
}

static int ctl_parse_pid(const char *text, pid_t *ret, struct problem *problem)
{
	int64_t number;

	if (setting_parse_integer(setting_slice_from_text(text), &number) || number < 1 ||
	    number > INT32_MAX)
		return problem_set(problem, -EINVAL, "'%.100s' is not a process ID", text);
	*ret = (pid_t)number;
	return 0;
}

static int ctl_parse_action(const char *text, uint32_t *ret, struct problem *problem)
{
	struct suggestion suggestion;
	char hint[64];

	suggestion_init(&suggestion, text, strlen(text));
	for (unsigned i = 0; i < CTL_ACTION_COUNT; i++) {
		*ret = ctl_actions[i].control_command;
		if (!strcmp(ctl_actions[i].word, text))
			return 0;
		suggestion_offer(&suggestion, ctl_actions[i].word, strlen(ctl_actions[i].word));
	}
	return problem_set(problem, -EINVAL,
			   "unknown action '%.100s'%s (kymo ctl PID start|stop|flush|status)", text,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

static int ctl_parse_operands_and_run_action(const struct parsed_command_line *result,
					     const struct ctl_option_values *options,
					     struct problem *problem)
{
	uint32_t command = 0;
	pid_t pid = 0;
	int error;

	if (result->operand_count < 1 || result->operand_count > 2)
		return problem_set(problem, -EINVAL,
				   "which process, and what? kymo ctl PID start|stop|flush|status");
	error = ctl_parse_pid(result->operands[0], &pid, problem);
	if (!error && result->operand_count == 2)
		error = ctl_parse_action(result->operands[1], &command, problem);
	if (error)
		return error;
	return options->tree ? ctl_send_command_or_print_session_status(pid, command, problem)
			     : ctl_send_command_or_print_status(pid, command, problem);
}

static int ctl_run_command(char **arguments, size_t count)
{
	struct effective_settings settings;
	struct ctl_option_values options = {0};
	struct parsed_command_line result = {.context = &options};
	struct problem problem;
	int status = command_parse_and_read_settings(&ctl_command_description, arguments, count,
						     &settings, &result),
	    error;

	if (status != COMMAND_CONTINUE)
		return status;
	error = ctl_parse_operands_and_run_action(&result, &options, &problem);
	if (error)
		message_error("%s", problem.text);
	effective_deinit(&settings);
	return error ? EXIT_KYMO_FAILED : message_flush_stdout_or_report_error(EXIT_SUCCESS);
}

const struct command ctl_command_description = {
	.name = "ctl",
	.summary = "start, stop or look at collection in a running process",
	.synopsis = "ctl [options] PID [start|stop|flush|status]",
	.text = "Asks a process that runs under kymo to start or stop collecting, to write "
		"everything it has recorded to its file (flush), or to report its state (the "
		"default). Returns when the process has answered.\n"
		"\n"
		"A stop lasts until the next start, whether it comes from kymo ctl, from the "
		"program with kymo_stop_trace(), or from CONTROL_SIGNAL. Windows (kymo help "
		"windows) continue meanwhile; data is collected only while both allow it. With "
		"--init-enabled=off the windows begin with the first start.",
	.examples = "kymo sample --init-enabled=off -- ./server     collect nothing yet\n"
		    "kymo ctl 1234 start                            collect from now on\n"
		    "kymo ctl 1234 stop --tree                      stop, its children as well\n",
	.words = "start stop flush status",
	.grammar = &ctl_grammar,
	.run = ctl_run_command,
};
