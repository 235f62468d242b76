/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * memcpy() and its like for libraries that are loaded into programs. What a library imports by
 * these names can be anybody's: libtsan and libasan have versions that look at the calling thread's
 * state, which a thread made without libc has not, and that report races between a program and the
 * one who watches it; other tools count in theirs. Compilers call these functions on their own, so
 * they cannot be called by other names; a hidden definition in the library itself comes before all.
 *
 * No vector registers, which callers may not have saved. Small sizes are what matters: two
 * accesses that overlap do the whole of a size between theirs and twice that.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* From here on the processor's own loop is as fast (ERMS). */
#define REP_MOVSB_BYTES_LEAST 256u

typedef uint64_t __attribute__((may_alias, aligned(1))) word;
typedef uint32_t __attribute__((may_alias, aligned(1))) half;
typedef uint16_t __attribute__((may_alias, aligned(1))) quarter;

#define UNALIGNED_LVALUE(type, pointer, offset) (*(type *)((pointer) + (offset)))
#define UNALIGNED_LOAD(type, pointer, offset)   (*(const type *)((pointer) + (offset)))

/* Up to 32 bytes. All is read before something is written, so they may overlap. */
static inline void copy_up_to_32_bytes(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size > 16) {
		word first = UNALIGNED_LOAD(word, from, 0), second = UNALIGNED_LOAD(word, from, 8);
		word third = UNALIGNED_LOAD(word, from, size - 16),
		     last = UNALIGNED_LOAD(word, from, size - 8);

		UNALIGNED_LVALUE(word, to, 0) = first;
		UNALIGNED_LVALUE(word, to, 8) = second;
		UNALIGNED_LVALUE(word, to, size - 16) = third;
		UNALIGNED_LVALUE(word, to, size - 8) = last;
	} else if (size >= 8) {
		word first = UNALIGNED_LOAD(word, from, 0),
		     last = UNALIGNED_LOAD(word, from, size - 8);

		UNALIGNED_LVALUE(word, to, 0) = first;
		UNALIGNED_LVALUE(word, to, size - 8) = last;
	} else if (size >= 4) {
		half first = UNALIGNED_LOAD(half, from, 0),
		     last = UNALIGNED_LOAD(half, from, size - 4);

		UNALIGNED_LVALUE(half, to, 0) = first;
		UNALIGNED_LVALUE(half, to, size - 4) = last;
	} else if (size >= 2) {
		quarter first = UNALIGNED_LOAD(quarter, from, 0),
			last = UNALIGNED_LOAD(quarter, from, size - 2);

		UNALIGNED_LVALUE(quarter, to, 0) = first;
		UNALIGNED_LVALUE(quarter, to, size - 2) = last;
	} else if (size) {
		*to = *from;
	}
}

/* More than 16; `to` may be in front of what it overlaps. */
static inline void copy_low_to_high(uint8_t *to, const uint8_t *from, size_t size)
{
	word third = UNALIGNED_LOAD(word, from, size - 16),
	     last = UNALIGNED_LOAD(word, from, size - 8);

	for (size_t at = 0; at < size - 16; at += 16) {
		word low = UNALIGNED_LOAD(word, from, at),
		     high = UNALIGNED_LOAD(word, from, at + 8);

		UNALIGNED_LVALUE(word, to, at) = low;
		UNALIGNED_LVALUE(word, to, at + 8) = high;
	}
	UNALIGNED_LVALUE(word, to, size - 16) = third;
	UNALIGNED_LVALUE(word, to, size - 8) = last;
}

/* More than 16; `to` may be behind what it overlaps. */
static inline void copy_high_to_low(uint8_t *to, const uint8_t *from, size_t size)
{
	word first = UNALIGNED_LOAD(word, from, 0), second = UNALIGNED_LOAD(word, from, 8);

	for (size_t at = size; at > 16; at -= 16) {
		word low = UNALIGNED_LOAD(word, from, at - 16),
		     high = UNALIGNED_LOAD(word, from, at - 8);

		UNALIGNED_LVALUE(word, to, at - 16) = low;
		UNALIGNED_LVALUE(word, to, at - 8) = high;
	}
	UNALIGNED_LVALUE(word, to, 0) = first;
	UNALIGNED_LVALUE(word, to, 8) = second;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *at = to;

	if (size <= 32)
		copy_up_to_32_bytes(to, from, size);
	else if (size < REP_MOVSB_BYTES_LEAST)
		copy_low_to_high(to, from, size);
	else
		__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	if (size <= 32)
		copy_up_to_32_bytes(to, from, size);
	else if ((uintptr_t)to - (uintptr_t)from >= size)
		copy_low_to_high(to, from, size);
	else
		copy_high_to_low(to, from, size);
	return to;
}

void *memset(void *to, int byte, size_t size)
{
	word all = (uint8_t)byte * UINT64_C(0x0101010101010101);
	uint8_t *at = to;

	if (size >= REP_MOVSB_BYTES_LEAST) {
		void *end = to;

		__asm__ volatile("rep stosb" : "+D"(end), "+c"(size) : "a"(byte) : "memory");
	} else if (size >= 8) {
		for (size_t i = 0; i < size - 8; i += 8)
			UNALIGNED_LVALUE(word, at, i) = all;
		UNALIGNED_LVALUE(word, at, size - 8) = all;
	} else if (size >= 4) {
		UNALIGNED_LVALUE(half, at, 0) = (half)all;
		UNALIGNED_LVALUE(half, at, size - 4) = (half)all;
	} else {
		for (size_t i = 0; i < size; i++)
			at[i] = (uint8_t)byte;
	}
	return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
	const uint8_t *one = left, *other = right;
	size_t i = 0;

	while (i + 8 <= size && UNALIGNED_LOAD(word, one, i) == UNALIGNED_LOAD(word, other, i))
		i += 8;
	for (; i < size; i++) {
		if (one[i] != other[i])
			return one[i] - other[i];
	}
	return 0;
}

int bcmp(const void *left, const void *right, size_t size)
{
	return memcmp(left, right, size);
}
