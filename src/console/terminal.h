/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A whole screen for a view that renews itself, and keys without Enter. The terminal is put back by
 * terminal_close(), and where the command ends by a signal that it handles.
 */
#ifndef KYMO_CONSOLE_TERMINAL_H
#define KYMO_CONSOLE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct terminal {
	bool is_open;
	struct termios before;
};

/* False: standard input and output are no terminal. */
bool terminal_is_there(void);
bool terminal_open(struct terminal *terminal);
void terminal_close(struct terminal *terminal);
void terminal_get_size(size_t *columns, size_t *lines);
/* Puts text, whose lines end in \n, on the screen in place of what was there. */
void terminal_show(const char *text);
/* The next key within so many milliseconds; 0: none; -1: input has ended. */
int terminal_wait_for_key(int milliseconds);

#endif
