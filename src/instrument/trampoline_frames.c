/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See trampoline_frames.h. The original's tables are found as unwinders find them, through the
 * program headers of the object that this code is in.
 */
#include "instrument/trampoline_frames.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>

#include "kymo/plan.h"

#define TRAMPOLINE_EH_FRAME_OFFSET PLAN_PAGE /* in the trampoline pages */
#define TRAMPOLINE_EH_FRAME_SIZE_MAX                                                               \
	(PLAN_TRAMPOLINE_CONSTANTS - PLAN_DATA_SIZE - TRAMPOLINE_EH_FRAME_OFFSET)

enum {
	EH_PE_PCREL_SDATA4 = 0x1b,
	EH_PE_UDATA4 = 0x03,
	EH_PE_DATAREL_SDATA4 = 0x3b,
	EH_PE_OMIT = 0xff
};

extern const Elf64_Ehdr __ehdr_start __attribute__((visibility("hidden"))); /* by the linker */
extern const uint8_t instrument_trampoline_begin[], instrument_trampoline_end[];

static uint32_t read_word(const uint8_t *at)
{
	uint32_t value;

	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

static void write_uint32_at(uint8_t *at, uint32_t value)
{
	__builtin_memcpy(at, &value, sizeof(value));
}

static const uint8_t *copy_bytes(uint8_t *to, const uint8_t *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = from[i];
	return to;
}

static const uint8_t *find_eh_frame_header(void)
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

/* The FDE that begins where the trampoline code does. */
static const uint8_t *find_trampoline_fde(void)
{
	const uint8_t *header = find_eh_frame_header(), *row;
	uint32_t count;

	if (!header || header[0] != 1 || header[1] != EH_PE_PCREL_SDATA4 ||
	    header[2] != EH_PE_UDATA4 || header[3] != EH_PE_DATAREL_SDATA4)
		return NULL;
	count = read_word(header + 8);
	for (row = header + 12; count; count--, row += 8)
		if (header + (int32_t)read_word(row) == instrument_trampoline_begin)
			return header + (int32_t)read_word(row + 4);
	return NULL;
}

void trampoline_frames_write(uint8_t *trampoline)
{
	const uint8_t *entry = find_trampoline_fde(), *common;
	uint8_t *at = trampoline + TRAMPOLINE_EH_FRAME_OFFSET;
	size_t common_size, size;

	if (!entry ||
	    (uintptr_t)instrument_trampoline_end - (uintptr_t)instrument_trampoline_begin >
		    TRAMPOLINE_EH_FRAME_OFFSET)
		return;
	common = entry + 4 - read_word(entry + 4);
	common_size = 4 + read_word(common);
	size = 4 + read_word(entry);
	/* version, "zR", factors, register, size, encoding */
	if (8 + common_size + size + 4 > TRAMPOLINE_EH_FRAME_SIZE_MAX || common[9] != 'z' ||
	    common[10] != 'R' || common[11] || common[16] != EH_PE_PCREL_SDATA4)
		return;
	copy_bytes(at + 8, common, common_size);
	copy_bytes(at + 8 + common_size, entry, size);
	write_uint32_at(at + 8 + common_size + 4, (uint32_t)common_size + 4);
	write_uint32_at(at + 8 + common_size + 8,
			(uint32_t)(trampoline - (at + 8 + common_size + 8)));
	write_uint32_at(at + 8 + common_size + size, 0);
	write_uint32_at(at + 4, 4); /* from this field to .eh_frame */
	copy_bytes(at, (const uint8_t[]){1, EH_PE_PCREL_SDATA4, EH_PE_OMIT, EH_PE_OMIT}, 4);
}

const void *trampoline_frames_get_eh_frame_hdr(const uint8_t *trampoline)
{
	return trampoline[TRAMPOLINE_EH_FRAME_OFFSET] == 1 ? trampoline + TRAMPOLINE_EH_FRAME_OFFSET
							   : NULL;
}
