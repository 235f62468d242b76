/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * UTF-8 checks for text that comes from the profiled program or from a user's file: symbol names,
 * paths, thread names and command lines may hold any bytes, while JSON and protobuf strings may
 * not, and a terminal takes some for commands. Pure functions.
 */
#ifndef KYMO_COMMON_UTF8_H
#define KYMO_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#define UTF8_REPLACEMENT      "\xEF\xBF\xBD" /* U+FFFD */
#define UTF8_REPLACEMENT_SIZE 3u

/* Bytes of the well-formed character at text (1 to 4), or 0 if there is none; Unicode table 3-7:
 * no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t utf8_character_size(const char *text, size_t size);
bool utf8_is_valid(const char *text, size_t size);
/* Copies text with every byte that belongs to no character replaced by U+FFFD. `ret` needs room for
 * size * UTF8_REPLACEMENT_SIZE bytes; returns the bytes written. */
size_t utf8_copy_replacing_invalid(const char *text, size_t size, char *ret);

/* Bytes of the next character, 1 to 4 (a byte that belongs to none: 1), and what stands for it
 * where people read: itself; "?" for a control character (C0, DEL, C1, directions of text), line
 * ends included; U+FFFD for what is no character. `size` is above 0. */
size_t utf8_next_printable_character(const char *text, size_t size, const char **shown,
				     size_t *shown_size);
/* The same of a whole text, terminated; what has no room for `size` bytes is left out, and no
 * character is cut in two. Returns the bytes written. */
size_t utf8_copy_printable(const char *text, size_t length, char *ret, size_t size);

#endif
