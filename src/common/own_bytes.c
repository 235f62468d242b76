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
#define MANY 256u

typedef uint64_t __attribute__((may_alias, aligned(1))) word;
typedef uint32_t __attribute__((may_alias, aligned(1))) half;
typedef uint16_t __attribute__((may_alias, aligned(1))) quarter;

#define AT(type, pointer, offset)   (*(type *)((pointer) + (offset)))
#define FROM(type, pointer, offset) (*(const type *)((pointer) + (offset)))

/* Up to 32 bytes. All is read before something is written, so they may overlap. */
static inline void move_few(uint8_t *to, const uint8_t *from, size_t size)
{
	if (size > 16) {
		word first = FROM(word, from, 0), second = FROM(word, from, 8);
		word third = FROM(word, from, size - 16), last = FROM(word, from, size - 8);

		AT(word, to, 0) = first;
		AT(word, to, 8) = second;
		AT(word, to, size - 16) = third;
		AT(word, to, size - 8) = last;
	} else if (size >= 8) {
		word first = FROM(word, from, 0), last = FROM(word, from, size - 8);

		AT(word, to, 0) = first;
		AT(word, to, size - 8) = last;
	} else if (size >= 4) {
		half first = FROM(half, from, 0), last = FROM(half, from, size - 4);

		AT(half, to, 0) = first;
		AT(half, to, size - 4) = last;
	} else if (size >= 2) {
		quarter first = FROM(quarter, from, 0), last = FROM(quarter, from, size - 2);

		AT(quarter, to, 0) = first;
		AT(quarter, to, size - 2) = last;
	} else if (size) {
		*to = *from;
	}
}

/* More than 16; `to` may be in front of what it overlaps. */
static inline void move_forward(uint8_t *to, const uint8_t *from, size_t size)
{
	word third = FROM(word, from, size - 16), last = FROM(word, from, size - 8);

	for (size_t at = 0; at < size - 16; at += 16) {
		word low = FROM(word, from, at), high = FROM(word, from, at + 8);

		AT(word, to, at) = low;
		AT(word, to, at + 8) = high;
	}
	AT(word, to, size - 16) = third;
	AT(word, to, size - 8) = last;
}

/* More than 16; `to` may be behind what it overlaps. */
static inline void move_backward(uint8_t *to, const uint8_t *from, size_t size)
{
	word first = FROM(word, from, 0), second = FROM(word, from, 8);

	for (size_t at = size; at > 16; at -= 16) {
		word low = FROM(word, from, at - 16), high = FROM(word, from, at - 8);

		AT(word, to, at - 16) = low;
		AT(word, to, at - 8) = high;
	}
	AT(word, to, 0) = first;
	AT(word, to, 8) = second;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *at = to;

	if (size <= 32)
		move_few(to, from, size);
	else if (size < MANY)
		move_forward(to, from, size);
	else
		__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(size) : : "memory");
	return to;
}

void *memmove(void *to, const void *from, size_t size)
{
	if (size <= 32)
		move_few(to, from, size);
	else if ((uintptr_t)to - (uintptr_t)from >= size)
		move_forward(to, from, size);
	else
		move_backward(to, from, size);
	return to;
}

void *memset(void *to, int byte, size_t size)
{
	word all = (uint8_t)byte * UINT64_C(0x0101010101010101);
	uint8_t *at = to;

	if (size >= MANY) {
		void *end = to;

		__asm__ volatile("rep stosb" : "+D"(end), "+c"(size) : "a"(byte) : "memory");
	} else if (size >= 8) {
		for (size_t i = 0; i < size - 8; i += 8)
			AT(word, at, i) = all;
		AT(word, at, size - 8) = all;
	} else if (size >= 4) {
		AT(half, at, 0) = (half)all;
		AT(half, at, size - 4) = (half)all;
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

	while (i + 8 <= size && FROM(word, one, i) == FROM(word, other, i))
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
