/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See unwind_chain.h. CHAIN_NAME is the entry's name. The functions are numbered by two hexadecimal
 * digits, so that the preprocessor writes all 256 of them.
 */
#include "unwind_chain.h"

/* clang-format off */
#define ROW(m, h) m(h, 0) m(h, 1) m(h, 2) m(h, 3) m(h, 4) m(h, 5) m(h, 6) m(h, 7) \
		  m(h, 8) m(h, 9) m(h, a) m(h, b) m(h, c) m(h, d) m(h, e) m(h, f)
#define ALL(m) ROW(m, 0) ROW(m, 1) ROW(m, 2) ROW(m, 3) ROW(m, 4) ROW(m, 5) ROW(m, 6) ROW(m, 7) \
	       ROW(m, 8) ROW(m, 9) ROW(m, a) ROW(m, b) ROW(m, c) ROW(m, d) ROW(m, e) ROW(m, f)
/* clang-format on */

#define DECLARE(h, l) static uint64_t link_##h##l(unsigned, uint64_t, void (*)(void));
#define NAME(h, l)    link_##h##l,

ALL(DECLARE)

static uint64_t (*const links[256])(unsigned, uint64_t, void (*)(void)) = {ALL(NAME)};

/* The array is read after the call, so that the frame lives across it. */
#define DEFINE(h, l)                                                                               \
	static uint64_t link_##h##l(unsigned depth, uint64_t seed, void (*bottom)(void))           \
	{                                                                                          \
		volatile uint64_t frame[1 + 0x##h##l % 23];                                        \
		uint64_t next = seed * 6364136223846793005u + 0x##h##l;                            \
                                                                                                   \
		frame[0] = next;                                                                   \
		if (depth <= 1)                                                                    \
			bottom();                                                                  \
		else                                                                               \
			next = links[next >> 56](depth - 1, next, bottom);                         \
		return frame[0] + next;                                                            \
	}

ALL(DEFINE)

uint64_t CHAIN_NAME(unsigned depth, uint64_t seed, void (*bottom)(void))
{
	return links[seed >> 56](depth, seed, bottom) + 1;
}
