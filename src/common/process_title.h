/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A program that writes a title over its arguments (setproctitle) leaves blanks or zeros behind it.
 */
#ifndef KYMO_COMMON_PROCESS_TITLE_H
#define KYMO_COMMON_PROCESS_TITLE_H

#include <stddef.h>
#include <string.h>

/* How many of the `size` bytes of zero-separated arguments are no padding; blanks at the end of a
 * title become zeros. */
static inline size_t process_title_trim_padding(char *arguments, size_t size)
{
	size_t first = strnlen(arguments, size), end = size;

	while (end > first && !arguments[end - 1])
		end--;
	/* The arguments of a program have no blank in the first one as a rule, or others follow. */
	if (!memchr(arguments, ' ', first) || end > first)
		return size;
	while (first && arguments[first - 1] == ' ')
		arguments[--first] = '\0';
	return first < size ? first + 1 : size;
}

#endif
