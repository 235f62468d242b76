/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rewritten.h. The note's addresses are believed only where the object's own segments are
 * loaded, for a file can be anything.
 */
#include "instrument/rewritten.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "regions/state.h"

static bool bytes_are_equal(const uint8_t *bytes, const char *other, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		if (bytes[i] != (uint8_t)other[i])
			return false;
	}
	return true;
}

/* Notes are aligned to four bytes, their contents may have pointers of eight. */
static void copy_bytes(void *to, const uint8_t *from, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static bool find_plan_note_in_segment(const uint8_t *at, const uint8_t *end, struct plan_note *ret)
{
	while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		uint64_t name = ((uint64_t)note->n_namesz + 3) & ~UINT64_C(3),
			 content = ((uint64_t)note->n_descsz + 3) & ~UINT64_C(3);

		at += sizeof(*note);
		if (name > (uint64_t)(end - at) || content > (uint64_t)(end - at) - name)
			return false;
		if (note->n_type == PLAN_NOTE_TYPE && note->n_namesz == sizeof(PLAN_NOTE_NAME) &&
		    note->n_descsz >= sizeof(*ret) &&
		    bytes_are_equal(at, PLAN_NOTE_NAME, sizeof(PLAN_NOTE_NAME))) {
			copy_bytes(ret, at + name, sizeof(*ret));
			return true;
		}
		at += name + content;
	}
	return false;
}

static bool range_is_within_load_segment(const struct dl_phdr_info *info, uint64_t vaddr,
					 uint64_t size, uint32_t flags)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && (header->p_flags & flags) == flags &&
		    vaddr >= header->p_vaddr && vaddr - header->p_vaddr <= header->p_memsz &&
		    size <= header->p_memsz - (vaddr - header->p_vaddr))
			return true;
	}
	return false;
}

static bool find_plan_note_in_object(const struct dl_phdr_info *info, struct plan_note *ret)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)(info->dlpi_addr + header->p_vaddr);

		/* Notes that are aligned to eight bytes are others (properties). */
		if (header->p_type == PT_NOTE && header->p_align <= 4 &&
		    range_is_within_load_segment(info, header->p_vaddr, header->p_memsz, PF_R) &&
		    find_plan_note_in_segment(at, at + header->p_memsz, ret))
			return true;
	}
	return false;
}

static bool arena_of_note_is_loaded(const struct dl_phdr_info *info, const struct plan_note *note)
{
	return range_is_within_load_segment(info, note->arena_vaddr, PLAN_DATA_SIZE, PF_W) &&
	       range_is_within_load_segment(info, note->arena_vaddr + PLAN_DATA_SIZE,
					    note->arena_size - PLAN_DATA_SIZE, PF_X);
}

static bool plan_note_is_valid(const struct dl_phdr_info *info, const struct plan_note *note)
{
	return note->arena_vaddr % PLAN_PAGE == 0 && note->arena_size > PLAN_STUBS &&
	       note->plan_size >= sizeof(struct plan_header) &&
	       (note->flags & PLAN_NOTE_ARENA_IS_MADE_AT_START ||
		arena_of_note_is_loaded(info, note)) &&
	       range_is_within_load_segment(info, note->plan_vaddr, note->plan_size, PF_R) &&
	       range_is_within_load_segment(info, note->modes_vaddr, note->function_count, PF_R);
}

static bool plan_is_supported(const struct plan_header *plan, const struct plan_note *note)
{
	return bytes_are_equal((const uint8_t *)plan->magic, PLAN_MAGIC, sizeof(plan->magic)) &&
	       plan->version == PLAN_VERSION && plan->plan_size == note->plan_size &&
	       plan->arena_vaddr == note->arena_vaddr &&
	       plan->functions.count == note->function_count &&
	       plan->functions.offset <= plan->plan_size && plan->stubs.offset <= plan->plan_size &&
	       plan->stubs.count <= plan->plan_size - plan->stubs.offset &&
	       plan->functions.count <=
		       (plan->plan_size - plan->functions.offset) / sizeof(struct plan_function);
}

bool rewritten_find_arena(const struct dl_phdr_info *info, struct arena *ret, bool *foreign)
{
	struct plan_note note;
	uint64_t bias = info->dlpi_addr;

	if (!find_plan_note_in_object(info, &note))
		return false;
	const struct plan_header *plan = (const void *)(bias + note.plan_vaddr);

	*foreign = !plan_note_is_valid(info, &note) || !plan_is_supported(plan, &note);
	if (*foreign)
		return true;
	*ret = (struct arena){
		.is_made_at_start = note.flags & PLAN_NOTE_ARENA_IS_MADE_AT_START,
		.data = (void *)(bias + note.arena_vaddr),
		.size = note.arena_size,
		.bias = bias,
		.low = plan->low + bias,
		.high = plan->high + bias,
		.count = note.function_count,
		.plan = plan,
		.modes = (const uint8_t *)(bias + note.modes_vaddr),
	};
	return true;
}

bool rewritten_replace_plan_by_copy(struct arena *arena)
{
	const struct plan_header *plan = arena->plan;
	const uint8_t *from = (const uint8_t *)plan;
	uint64_t stubs_end = plan->stubs.offset + plan->stubs.count;
	uint8_t *kept = region_map_memory(plan->plan_size + arena->count);

	if (!kept)
		return false;
	if (stubs_end < plan->stubs.offset || stubs_end > plan->plan_size)
		stubs_end = plan->plan_size;
	copy_bytes(kept, from, plan->stubs.offset < stubs_end ? plan->stubs.offset : stubs_end);
	copy_bytes(kept + stubs_end, from + stubs_end, plan->plan_size - stubs_end);
	copy_bytes(kept + plan->plan_size, arena->modes, arena->count);
	arena->plan = (const void *)kept;
	arena->modes = kept + plan->plan_size;
	return true;
}

static int check_object_has_plan_note(struct dl_phdr_info *info, size_t size, void *context)
{
	struct plan_note note;

	(void)size;
	(void)context;
	return find_plan_note_in_object(info, &note);
}

bool rewritten_any_loaded(void)
{
	return dl_iterate_phdr(check_object_has_plan_note, NULL) != 0;
}
