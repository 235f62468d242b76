/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rewritten.h. They are known by a note (kymo/plan.h); what is in it is libkymo's to judge.
 */
#include "libkymo-dl/rewritten.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kymo/plan.h"

static bool notes_contain_kymo_note(const uint8_t *at, const uint8_t *end)
{
	while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		uint64_t size = (((uint64_t)note->n_namesz + 3) & ~UINT64_C(3)) +
				(((uint64_t)note->n_descsz + 3) & ~UINT64_C(3));

		at += sizeof(*note);
		if (size > (uint64_t)(end - at))
			return false;
		if (note->n_type == PLAN_NOTE_TYPE && note->n_namesz == sizeof(PLAN_NOTE_NAME) &&
		    memcmp(at, PLAN_NOTE_NAME, sizeof(PLAN_NOTE_NAME)) == 0)
			return true;
		at += size;
	}
	return false;
}

static bool segment_content_is_within_load_segment(const struct dl_phdr_info *info,
						   const ElfW(Phdr) * part)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && part->p_vaddr >= header->p_vaddr &&
		    part->p_vaddr - header->p_vaddr <= header->p_memsz &&
		    part->p_memsz <= header->p_memsz - (part->p_vaddr - header->p_vaddr))
			return true;
	}
	return false;
}

static int check_object_has_kymo_note(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	(void)context;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)(info->dlpi_addr + header->p_vaddr);

		if (header->p_type == PT_NOTE && header->p_align <= 4 &&
		    segment_content_is_within_load_segment(info, header) &&
		    notes_contain_kymo_note(at, at + header->p_memsz))
			return 1;
	}
	return 0;
}

bool rewritten_any_loaded(void)
{
	return dl_iterate_phdr(check_object_has_kymo_note, NULL) != 0;
}
