/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading the primitive values of .eh_frame from bytes that nobody vouches for. A cursor that was
 * asked for more than there is turns bad, stays where it is and yields zeros: callers check once.
 */
#ifndef KYMO_CORE_UNWIND_DWARF_H
#define KYMO_CORE_UNWIND_DWARF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_cursor {
	const uint8_t *at, *end;
	bool bad;
};

/* Pointer encodings (LSB Core, 10.5.1 "DWARF Exception Header Encoding"). */
enum {
	DWARF_PE_ABSOLUTE = 0x00,
	DWARF_PE_ULEB = 0x01,
	DWARF_PE_UDATA2 = 0x02,
	DWARF_PE_UDATA4 = 0x03,
	DWARF_PE_UDATA8 = 0x04,
	DWARF_PE_SIGNED = 0x08,
	DWARF_PE_SLEB = 0x09,
	DWARF_PE_SDATA2 = 0x0a,
	DWARF_PE_SDATA4 = 0x0b,
	DWARF_PE_SDATA8 = 0x0c,
	DWARF_PE_PCREL = 0x10,
	DWARF_PE_DATAREL = 0x30,
	DWARF_PE_ALIGNED = 0x50,
	DWARF_PE_INDIRECT = 0x80,
	DWARF_PE_OMIT = 0xff
};

static inline struct dwarf_cursor dwarf_cursor_init(const uint8_t *at, size_t size)
{
	return (struct dwarf_cursor){.at = at, .end = at + size, .bad = false};
}

static inline size_t dwarf_count_bytes_left(const struct dwarf_cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static inline void dwarf_skip_bytes(struct dwarf_cursor *cursor, uint64_t size)
{
	if (size > dwarf_count_bytes_left(cursor)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return;
	}
	cursor->at += size;
}

/* Little-endian unsigned integer of 1 to 8 bytes. */
static inline uint64_t dwarf_read_unsigned(struct dwarf_cursor *cursor, unsigned size)
{
	uint64_t value = 0;

	if (size > dwarf_count_bytes_left(cursor)) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return 0;
	}
	for (unsigned i = 0; i < size; i++)
		value |= (uint64_t)cursor->at[i] << (8 * i);
	cursor->at += size;
	return value;
}

static inline int64_t dwarf_read_signed(struct dwarf_cursor *cursor, unsigned size)
{
	unsigned shift = 64 - 8 * size;

	return (int64_t)(dwarf_read_unsigned(cursor, size) << shift) >> shift;
}

static inline uint64_t dwarf_read_uleb(struct dwarf_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
		uint8_t byte = *cursor->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
	cursor->bad = true;
	return 0;
}

static inline int64_t dwarf_read_sleb(struct dwarf_cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; cursor->at < cursor->end;) {
		uint8_t byte = *cursor->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 127) << shift;
		shift += 7;
		if (byte & 128)
			continue;
		if (shift < 64 && (byte & 64))
			value |= ~(uint64_t)0 << shift;
		return (int64_t)value;
	}
	cursor->bad = true;
	return 0;
}

/* An encoded pointer. `address` is where the cursor stands in the image's address space, `data` the
 * base of data-relative values. What an indirect pointer points at is not followed: such a value
 * turns the cursor bad unless `skip` says that only its length matters. */
uint64_t dwarf_read_encoded_pointer(struct dwarf_cursor *cursor, uint8_t encoding, uint64_t address,
				    uint64_t data, bool skip);

#endif
