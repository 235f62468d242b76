/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Text building without stdio: appends to a buffer, always terminated, cut when full. Signal-safe.
 */
#ifndef KYMO_CORE_TEXT_H
#define KYMO_CORE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
	char *start;
	size_t length, size;
};

static inline struct text text_on(char *buffer, size_t size)
{
	buffer[0] = 0;
	return (struct text){buffer, 0, size};
}

static inline void text_character(struct text *text, char c)
{
	if (text->length + 1 < text->size) {
		text->start[text->length++] = c;
		text->start[text->length] = 0;
	}
}

static inline void text_string(struct text *text, const char *string)
{
	while (string && *string)
		text_character(text, *string++);
}

static inline void text_unsigned(struct text *text, uint64_t value)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		text_character(text, digits[--count]);
}

static inline void text_hex(struct text *text, uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		text_character(text, "0123456789abcdef"[(value >> shift) & 15]);
}

#endif
