/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See commands.h.
 */
#include "cmd/commands.h"

#include "cmd/avail/avail.h"
#include "cmd/help/help.h"

const struct command *const command_table[] = {
	&sample_command_description,
	&instrument_command_description,
	&causal_command_description,
	&attach_command_description,
	&python_command_description,
	&run_command_description,
	&top_command_description,
	&counters_command_description,
	&report_command_description,
	&diff_command_description,
	&annotate_command_description,
	&sql_command_description,
	&merge_command_description,
	&ctl_command_description,
	&avail_command_description,
	&help_command_description,
	NULL,
};
