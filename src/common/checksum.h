/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The checksum of cache files, over every byte: four lanes of multiply and rotate, as fast as
 * memory is read. It finds damage (a torn write, a bad disk); who may have written the file is
 * another question, which its owner and mode answer.
 */
#ifndef KYMO_COMMON_CHECKSUM_H
#define KYMO_COMMON_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

struct checksum_state {
	uint64_t lanes[4];
};

static inline struct checksum_state checksum_get_initial_state(void)
{
	return (struct checksum_state){{1, 2, 3, 4}};
}

/* The end of each call's bytes is filled up with zeros to a multiple of 32. */
static inline void checksum_add_bytes(struct checksum_state *sum, const void *bytes_, size_t size)
{
	const uint64_t factor = 0x9e3779b97f4a7c15;
	const uint8_t *bytes = bytes_;
	uint64_t words[4] = {0};

	for (size_t at = 0; at < size; at += sizeof(words)) {
		size_t left = size - at;

		if (left >= sizeof(words)) {
			__builtin_memcpy(words, bytes + at, sizeof(words));
		} else {
			for (size_t i = 0; i < sizeof(words); i++)
				((uint8_t *)words)[i] = i < left ? bytes[at + i] : 0;
		}
		for (unsigned i = 0; i < 4; i++) {
			uint64_t product = (sum->lanes[i] ^ words[i]) * factor;

			sum->lanes[i] = product ^ product >> 32;
		}
	}
}

static inline uint64_t checksum_compute_final_value(const struct checksum_state *sum)
{
	const uint64_t *lanes = sum->lanes;

	return lanes[0] ^ (lanes[1] << 1) ^ (lanes[2] << 2) ^ (lanes[3] << 3);
}

#endif
