/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Multiply and fold (as in wyhash): for numbers that come one after the other, frames of a stack
 * say. Every bit of what is added moves every bit of the hash, in four cycles. Signal-safe.
 */
#ifndef KYMO_COMMON_FOLD_HASH_H
#define KYMO_COMMON_FOLD_HASH_H

#include <stdint.h>

#define FOLD_HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t fold_hash_multiply(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t fold_hash_add(uint64_t hash, uint64_t word)
{
	return fold_hash_multiply(hash ^ word, FOLD_HASH_FACTOR);
}

#endif
