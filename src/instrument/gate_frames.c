/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See gate_frames.h. The original's tables are found as unwinders find them, through the program
 * headers of the object that this code is in.
 */
#include "instrument/gate_frames.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

#include "kymo/plan.h"

#define FRAMES_AT   PLAN_PAGE /* in the gate pages */
#define FRAMES_ROOM (PLAN_GATE_CONSTANTS - PLAN_DATA_SIZE - FRAMES_AT)

enum { ENCODED_RELATIVE = 0x1b, ENCODED_COUNT = 0x03, ENCODED_TABLE = 0x3b, OMITTED = 0xff };

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden"))); /* by the linker */
extern const uint8_t instrument_gate_begin[], instrument_gate_end[];

static uint32_t word(const uint8_t *at)
{
	uint32_t value;

	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

static void put_word(uint8_t *at, uint32_t value)
{
	__builtin_memcpy(at, &value, sizeof(value));
}

static const uint8_t *copy(uint8_t *to, const uint8_t *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from[i];
	return to;
}

static const uint8_t *find_header(void)
{
	const uint8_t *base = (const uint8_t *)&__ehdr_start;
	const Elf64_Phdr *headers = (const void *)(base + __ehdr_start.e_phoff);
	const Elf64_Phdr *first = NULL, *frames = NULL;

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++) {
		if (headers[i].p_type == PT_LOAD && !first)
			first = &headers[i];
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			frames = &headers[i];
	}
	return first && frames ? base - first->p_vaddr + frames->p_vaddr : NULL;
}

/* The FDE that begins where the gate code does. */
static const uint8_t *find_entry(void)
{
	const uint8_t *header = find_header(), *row;
	uint32_t count;

	if (!header || header[0] != 1 || header[1] != ENCODED_RELATIVE ||
	    header[2] != ENCODED_COUNT || header[3] != ENCODED_TABLE)
		return NULL;
	count = word(header + 8);
	for (row = header + 12; count; count--, row += 8)
		if (header + (int32_t)word(row) == instrument_gate_begin)
			return header + (int32_t)word(row + 4);
	return NULL;
}

void gate_frames_write(uint8_t *gate)
{
	const uint8_t *entry = find_entry(), *common;
	uint8_t *at = gate + FRAMES_AT;
	size_t common_size, size;

	if (!entry || (uintptr_t)instrument_gate_end - (uintptr_t)instrument_gate_begin > FRAMES_AT)
		return;
	common = entry + 4 - word(entry + 4);
	common_size = 4 + word(common);
	size = 4 + word(entry);
	/* version, "zR", factors, register, size, encoding */
	if (8 + common_size + size + 4 > FRAMES_ROOM || common[9] != 'z' || common[10] != 'R' ||
	    common[11] || common[16] != ENCODED_RELATIVE)
		return;
	copy(at + 8, common, common_size);
	copy(at + 8 + common_size, entry, size);
	put_word(at + 8 + common_size + 4, (uint32_t)common_size + 4);
	put_word(at + 8 + common_size + 8, (uint32_t)(gate - (at + 8 + common_size + 8)));
	put_word(at + 8 + common_size + size, 0);
	put_word(at + 4, 4); /* from this field to .eh_frame */
	copy(at, (const uint8_t[]){1, ENCODED_RELATIVE, OMITTED, OMITTED}, 4);
}

const void *gate_frames(const uint8_t *gate)
{
	return gate[FRAMES_AT] == 1 ? gate + FRAMES_AT : NULL;
}
