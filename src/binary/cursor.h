/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading little-endian and LEB128 values from bytes that may end anywhere. Past the end every read
 * gives 0 and the cursor stays at the end, with `failed` set: check once after a group of reads.
 */
#ifndef KYMO_BINARY_CURSOR_H
#define KYMO_BINARY_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct byte_cursor {
	const uint8_t *at, *end;
	bool failed;
};

static inline size_t cursor_remaining_bytes(const struct byte_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static inline bool cursor_skip_bytes(struct byte_cursor *cursor, uint64_t size)
{
	if (size > cursor_remaining_bytes(cursor)) {
		cursor->at = cursor->end;
		cursor->failed = true;
		return false;
	}
	cursor->at += size;
	return true;
}

/* An unsigned integer of 1 to 8 bytes. */
static inline uint64_t cursor_read_fixed_uint(struct byte_cursor *cursor, size_t size)
{
	uint64_t value = 0;
	if (cursor_skip_bytes(cursor, size))
		memcpy(&value, cursor->at - size, size);
	return value;
}

static inline uint8_t cursor_read_byte(struct byte_cursor *cursor)
{
	return cursor_skip_bytes(cursor, 1) ? cursor->at[-1] : 0;
}

/* Bits beyond the 64th are dropped. */
static inline uint64_t cursor_read_uleb128(struct byte_cursor *cursor)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned shift = 0;
	do {
		byte = cursor_read_byte(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

static inline int64_t cursor_read_sleb128(struct byte_cursor *cursor)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned shift = 0;
	do {
		byte = cursor_read_byte(cursor);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	return (int64_t)value;
}

/* A zero-terminated string that ends before the cursor's end, or NULL. */
static inline const char *cursor_read_string(struct byte_cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	const uint8_t *zero = memchr(cursor->at, 0, cursor_remaining_bytes(cursor));
	if (!zero) {
		cursor->at = cursor->end;
		cursor->failed = true;
		return NULL;
	}
	cursor->at = zero + 1;
	return text;
}

#endif
