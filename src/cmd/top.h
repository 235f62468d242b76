/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the files of `kymo top` share: the command, and the kymo that samples for it.
 */
#ifndef KYMO_CMD_TOP_H
#define KYMO_CMD_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/problem.h"
#include "console/terminal.h"
#include "output/live/live.h"
#include "settings/effective.h"

struct top_option_values {
	const char *pid, *interval, *count, *rows, *freq, *output;
	bool is_plain, realtime;
};

struct top_command {
	struct effective_settings settings;
	struct top_option_values values;
	struct live_options options;
	struct live_view view;
	struct terminal terminal;
	char *directory;
	bool is_temporary; /* the directory is removed */
	pid_t child;       /* the kymo that samples; 0: none, or it has ended */
	int child_status;
	int status_of_failure;
	int64_t interval_ms;
	uint64_t looks_left;       /* 0: no limit */
	bool is_program;           /* the operands are one */
	bool ignores_broken_pipes; /* as whoever started kymo wants it */
	bool is_paused, has_ended, was_asked_to_end;
};

/* Until this is called, signals end kymo at once. */
void top_catch_signals(struct top_command *command);
bool top_was_signalled(void);

/* Makes the result directory, or checks the one that is named. */
int top_make_directory(struct top_command *command, struct problem *problem);
/* Starts a kymo that samples the program, or attaches to --pid. `has_screen`: the program must not
 * write to it. */
int top_start_child(struct top_command *command, char **program, size_t count, bool has_screen,
		    struct problem *problem);
/* `options`: of waitpid(2). */
void top_look_after_child(struct top_command *command, int options);
void top_end_child(struct top_command *command);

#endif
