/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * strlen() and its like for libraries that are loaded into programs; libc_mem.c says why. Strings
 * are names and paths: byte by byte is fast enough, and reads nothing behind them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

size_t strnlen(const char *text, size_t most)
{
	size_t length = 0;

	while (length < most && text[length])
		length++;
	return length;
}

int strncmp(const char *left, const char *right, size_t most)
{
	for (size_t i = 0; i < most; i++) {
		int difference = (unsigned char)left[i] - (unsigned char)right[i];

		if (difference || !left[i])
			return difference;
	}
	return 0;
}

int strcmp(const char *left, const char *right)
{
	return strncmp(left, right, (size_t)-1);
}

char *strchr(const char *text, int byte)
{
	for (; *text != (char)byte; text++) {
		if (!*text)
			return NULL;
	}
	return (char *)text;
}

char *strrchr(const char *text, int byte)
{
	const char *found = NULL;

	do {
		if (*text == (char)byte)
			found = text;
	} while (*text++);
	return (char *)found;
}

char *strstr(const char *text, const char *part)
{
	size_t length = strlen(part);

	for (; strncmp(text, part, length) != 0; text++) {
		if (!*text)
			return NULL;
	}
	return (char *)text;
}

/* How many bytes at the start of `text` are among `set`, or are not. */
static size_t count_leading_bytes_in_or_out_of_set(const char *text, const char *set, bool among)
{
	size_t length = 0;

	while (text[length] && (strchr(set, text[length]) != NULL) == among)
		length++;
	return length;
}

size_t strspn(const char *text, const char *accepted)
{
	return count_leading_bytes_in_or_out_of_set(text, accepted, true);
}

size_t strcspn(const char *text, const char *rejected)
{
	return count_leading_bytes_in_or_out_of_set(text, rejected, false);
}

char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

char *strcat(char *restrict to, const char *restrict from)
{
	strcpy(to + strlen(to), from);
	return to;
}
