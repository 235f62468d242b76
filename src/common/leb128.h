/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * LEB128 and zigzag, as the spool's records use them. Encoders need 10 free bytes. No state.
 */
#ifndef KYMO_COMMON_LEB128_H
#define KYMO_COMMON_LEB128_H

#include <stdbool.h>
#include <stdint.h>

#define LEB128_BYTES_MAX 10

static inline uint8_t *leb128_write(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static inline uint64_t zigzag_encode(int64_t value)
{
	return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

static inline int64_t zigzag_decode(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static inline uint8_t *leb128_write_zigzag(uint8_t *at, int64_t value)
{
	return leb128_write(at, zigzag_encode(value));
}

static inline uint8_t *write_fixed64_little_endian(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		*at++ = (uint8_t)(value >> (8 * i));
	return at;
}

/* Reads one number from [*at, end); false when it is cut off or longer than 64 bits. */
static inline bool leb128_read(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
	uint64_t value = 0;
	const uint8_t *p = *at;
	for (unsigned shift = 0; shift < 64 && p < end; shift += 7) {
		uint8_t byte = *p++;
		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*at = p;
			*ret = value;
			return true;
		}
	}
	return false;
}

#endif
