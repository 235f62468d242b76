/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See terminal.h. Sequences are those of ECMA-48 that every terminal since the VT100 has, and the
 * alternate screen of xterm.
 */
#include "console/terminal.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ALTERNATE_SCREEN "\033[?1049h\033[?25l"
#define FORMER_SCREEN    "\033[?25h\033[?1049l"
#define HOME             "\033[H"
#define CLEAR_LINE_REST  "\033[K"
#define CLEAR_REST       "\033[J"

bool terminal_is_there(void)
{
	const char *type = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && type && strcmp(type, "dumb") != 0;
}

bool terminal_open(struct terminal *terminal)
{
	struct termios keys;

	*terminal = (struct terminal){.is_open = false};
	if (!terminal_is_there() || tcgetattr(STDIN_FILENO, &terminal->before) != 0)
		return false;
	keys = terminal->before;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN] = 0;
	keys.c_cc[VTIME] = 0;
	if (tcsetattr(STDIN_FILENO, TCSANOW, &keys) != 0)
		return false;
	terminal->is_open = true;
	fputs(ALTERNATE_SCREEN, stdout);
	fflush(stdout);
	return true;
}

void terminal_close(struct terminal *terminal)
{
	if (!terminal->is_open)
		return;
	terminal->is_open = false;
	fputs(FORMER_SCREEN, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
}

void terminal_get_size(size_t *columns, size_t *lines)
{
	struct winsize size;

	*columns = 80;
	*lines = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
		*columns = size.ws_col;
		*lines = size.ws_row;
	}
}

void terminal_show(const char *text)
{
	size_t columns, lines, line = 1;

	terminal_get_size(&columns, &lines);
	fputs(HOME, stdout);
	while (*text && line <= lines) {
		size_t length = strcspn(text, "\n");
		fwrite(text, 1, length, stdout);
		fputs(CLEAR_LINE_REST, stdout);
		text += length + (text[length] == '\n');
		if (*text && line < lines)
			fputs("\r\n", stdout);
		line++;
	}
	fputs(CLEAR_REST, stdout);
	fflush(stdout);
}

int terminal_wait_for_key(int milliseconds)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char key;
	int ready = poll(&input, 1, milliseconds);

	if (ready <= 0)
		return 0;
	return read(STDIN_FILENO, &key, 1) == 1 ? key : -1;
}
