/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo says to the person: lines on standard error that begin with "kymo: ". Standard output
 * belongs to the program, or to the answer of `kymo report` and `kymo avail`. Control characters
 * and bytes that are no UTF-8 do not reach the terminal (utf8_next_printable_character).
 *
 * The one piece of state is the verbosity, set once when the settings are known.
 */
#ifndef KYMO_CONSOLE_MESSAGE_H
#define KYMO_CONSOLE_MESSAGE_H

#include <stdbool.h>

enum console_exit_status {
	EXIT_KYMO_FAILED = 125, /* as env(1), timeout(1): kymo itself could not do it */
	EXIT_PROGRAM_NOT_EXECUTABLE = 126,
	EXIT_PROGRAM_NOT_FOUND = 127
};

/* VERBOSE: -1 errors only, 0 notes, 1 and up details. */
void message_set_verbosity(int level);
int message_get_verbosity(void);
/* COLOR: 'a'uto, 'A'lways, 'n'ever. */
/* Messages name this path by another one. Both stay the caller's. */
void message_set_path_alias(const char *path, const char *shown);
const char *message_get_shown_path(const char *path);
void message_set_color(const char *when);
/* Whether to colour what goes to this descriptor (NO_COLOR, TERM=dumb and COLOR honoured). */
bool message_uses_color(int descriptor);
/* How wide what goes to this descriptor may be: COLUMNS, or the terminal's width; 0: unknown. */
unsigned message_get_columns(int descriptor);

/* The exit status of a command that answers on standard output: STATUS, or, where the answer could
 * not be written, EXIT_KYMO_FAILED, which is said. */
int message_flush_stdout_or_report_error(int status);

__attribute__((format(printf, 1, 2))) void message_error(const char *format, ...);
__attribute__((format(printf, 1, 2))) void message_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void message_note(const char *format, ...);
__attribute__((format(printf, 1, 2))) void message_detail(const char *format, ...);

#endif
