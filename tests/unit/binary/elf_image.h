/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A small ELF file made by hand: one executable section at IMAGE_TEXT and a symbol table that the
 * test chooses.
 */
#ifndef KYMO_TESTS_ELF_IMAGE_H
#define KYMO_TESTS_ELF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define IMAGE_TEXT      0x1000u
#define IMAGE_TEXT_SIZE 0x1000u

struct image_symbol {
	const char *name;
	uint64_t address, size;
	unsigned type, binding; /* STT_*, STB_* */
	uint16_t section;       /* 0: .text */
};

/* malloc'ed. */
uint8_t *elf_image(const struct image_symbol *symbols, size_t count, size_t *ret_size);

#endif
