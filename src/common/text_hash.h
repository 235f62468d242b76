/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * FNV-1a of a text, 64 bits: for tables of names, and wherever that many bits tell texts apart.
 * (binary/string_pool.c hashes long names, eight bytes at a time.)
 */
#ifndef KYMO_COMMON_TEXT_HASH_H
#define KYMO_COMMON_TEXT_HASH_H

#include <stdint.h>

#define TEXT_HASH_OF_NOTHING UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash`: TEXT_HASH_OF_NOTHING, or what stands before the text. */
static inline uint64_t text_hash_append(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
