/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Text building without stdio: appends to a buffer, always terminated, cut when full. Signal-safe.
 */
#ifndef KYMO_CORE_BASE_TEXT_H
#define KYMO_CORE_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text_buffer {
	char *start;
	size_t length, size;
};

static inline struct text_buffer text_buffer_init(char *buffer, size_t size)
{
	buffer[0] = 0;
	return (struct text_buffer){buffer, 0, size};
}

static inline void text_append_character(struct text_buffer *text, char c)
{
	if (text->length + 1 < text->size) {
		text->start[text->length++] = c;
		text->start[text->length] = 0;
	}
}

static inline void text_append_string(struct text_buffer *text, const char *string)
{
	while (string && *string)
		text_append_character(text, *string++);
}

static inline void text_append_unsigned(struct text_buffer *text, uint64_t value)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		text_append_character(text, digits[--count]);
}

static inline void text_append_hex(struct text_buffer *text, uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		text_append_character(text, "0123456789abcdef"[(value >> shift) & 15]);
}

#endif
