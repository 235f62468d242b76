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

static bool same(const uint8_t *bytes, const char *other, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		if (bytes[i] != (uint8_t)other[i])
			return false;
	}
	return true;
}

/* Notes are aligned to four bytes, their contents may have pointers of eight. */
static void take(void *to, const uint8_t *from, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static bool find_in(const uint8_t *at, const uint8_t *end, struct plan_note *ret)
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
		    same(at, PLAN_NOTE_NAME, sizeof(PLAN_NOTE_NAME))) {
			take(ret, at + name, sizeof(*ret));
			return true;
		}
		at += name + content;
	}
	return false;
}

static bool is_loaded(const struct dl_phdr_info *info, uint64_t vaddr, uint64_t size,
		      uint32_t flags)
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

static bool find_note(const struct dl_phdr_info *info, struct plan_note *ret)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		const uint8_t *at = (const uint8_t *)(info->dlpi_addr + header->p_vaddr);

		/* Notes that are aligned to eight bytes are others (properties). */
		if (header->p_type == PT_NOTE && header->p_align <= 4 &&
		    is_loaded(info, header->p_vaddr, header->p_memsz, PF_R) &&
		    find_in(at, at + header->p_memsz, ret))
			return true;
	}
	return false;
}

static bool is_sound(const struct dl_phdr_info *info, const struct plan_note *note)
{
	return note->arena_vaddr % PLAN_PAGE == 0 && note->arena_size > PLAN_STUBS &&
	       note->plan_size >= sizeof(struct plan_header) &&
	       is_loaded(info, note->arena_vaddr, PLAN_DATA_SIZE, PF_W) &&
	       is_loaded(info, note->arena_vaddr + PLAN_DATA_SIZE,
			 note->arena_size - PLAN_DATA_SIZE, PF_X) &&
	       is_loaded(info, note->plan_vaddr, note->plan_size, PF_R) &&
	       is_loaded(info, note->modes_vaddr, note->function_count, PF_R);
}

static bool is_understood(const struct plan_header *plan, const struct plan_note *note)
{
	return same((const uint8_t *)plan->magic, PLAN_MAGIC, sizeof(plan->magic)) &&
	       plan->version == PLAN_VERSION && plan->plan_size == note->plan_size &&
	       plan->arena_vaddr == note->arena_vaddr &&
	       plan->functions.count == note->function_count &&
	       plan->functions.offset <= plan->plan_size &&
	       plan->functions.count <=
		       (plan->plan_size - plan->functions.offset) / sizeof(struct plan_function);
}

bool rewritten_find(const struct dl_phdr_info *info, struct arena *ret, bool *foreign)
{
	struct plan_note note;
	uint64_t bias = info->dlpi_addr;

	if (!find_note(info, &note))
		return false;
	const struct plan_header *plan = (const void *)(bias + note.plan_vaddr);

	*foreign = !is_sound(info, &note) || !is_understood(plan, &note);
	if (*foreign)
		return true;
	*ret = (struct arena){
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

bool rewritten_keep(struct arena *arena)
{
	const struct plan_header *plan = arena->plan;
	const uint8_t *from = (const uint8_t *)plan;
	uint64_t stubs_end = plan->stubs.offset + plan->stubs.count;
	uint8_t *kept = region_map(plan->plan_size + arena->count);

	if (!kept)
		return false;
	if (stubs_end < plan->stubs.offset || stubs_end > plan->plan_size)
		stubs_end = plan->plan_size;
	take(kept, from, plan->stubs.offset < stubs_end ? plan->stubs.offset : stubs_end);
	take(kept + stubs_end, from + stubs_end, plan->plan_size - stubs_end);
	take(kept + plan->plan_size, arena->modes, arena->count);
	arena->plan = (const void *)kept;
	arena->modes = kept + plan->plan_size;
	return true;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *context)
{
	struct plan_note note;

	(void)size;
	(void)context;
	return find_note(info, &note);
}

bool rewritten_present(void)
{
	return dl_iterate_phdr(look_at, NULL) != 0;
}
