/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The result directory that the environment of a process names which records itself: OUTPUT_PATH
 * with its keys, as launch/result_path.h expands them for the command.
 */
#ifndef KYMO_LIBKYMO_SESSION_PATH_H
#define KYMO_LIBKYMO_SESSION_PATH_H

#include <stdbool.h>

#include "core/base/text.h"

/* NULL: the variable is not there. */
const char *session_path_find_value(char *const *environment, const char *name);
/* What stands for %n. */
void session_path_append_program_name(struct text_buffer *text);
/* What stands for %t. */
void session_path_append_date_and_time(struct text_buffer *text);
/* A key that is none stays as it is. */
void session_path_append_expanded(struct text_buffer *text, const char *pattern,
				  char *const *environment);

#endif
