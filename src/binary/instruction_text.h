/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instructions as people read them, in Intel's syntax, by Zydis where kymo is built with it.
 */
#ifndef KYMO_BINARY_INSTRUCTION_TEXT_H
#define KYMO_BINARY_INSTRUCTION_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_TEXT_BYTES 96u

bool instruction_text_is_built_in(void);
/* The length of the instruction that lies at `address`; 0: the bytes are none, or there is no
 * Zydis. */
uint32_t instruction_to_text(const uint8_t *bytes, size_t size, uint64_t address,
			     char ret[INSTRUCTION_TEXT_BYTES]);

#endif
