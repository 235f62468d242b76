/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where a module's arena lies: free in all processes, as far as that can be known beforehand, out
 * of the way of what grows, and so near that 32-bit distances reach from all of it to all of the
 * module.
 *
 * On Linux for x86-64 (mm/mmap.c, fs/binfmt_elf.c):
 * - Executables at fixed addresses begin at 4 MiB; below them nothing is mapped, down to
 *   vm.mmap_min_addr (64 KiB). Behind them, at a random distance of up to 32 MiB, the heap begins
 *   and grows upwards.
 * - Position-independent executables lie alone at 2/3 of the address space; the heap is behind them
 *   as well; below them all is free.
 * - Libraries are mapped one below the other, and later mappings below them. Above the first is
 *   only the stack, mostly several GiB away, but without address randomization within 128 MiB. With
 *   the same distance for all libraries their arenas are as far apart as they are themselves.
 */
#include <errno.h>
#include <string.h>

#include "binary/plan/private.h"

#define MIB                ((uint64_t)1 << 20)
#define GIB                ((uint64_t)1 << 30)
#define ARENA_LOWEST_VADDR (2 * MIB / 16) /* twice vm.mmap_min_addr */
#define ARENA_REACH_BYTES  (2 * GIB - 16 * MIB)
/* Between the places below a module whose data is out of reach. */
#define GIANT_PLACEMENT_DISTANCE (256 * MIB)
#define ROUND_UP_TO_PAGE(x)      (((x) + PLAN_PAGE - 1) & ~(uint64_t)(PLAN_PAGE - 1))

static bool file_has_soname(const struct elf_file *file)
{
	const struct elf_section *section = elf_section_find(file, ".dynamic");
	struct elf_section_data data;
	bool found = false;

	if (!section || elf_section_read(file, section, &data))
		return false;
	for (size_t at = 0; data.size - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn entry;
		memcpy(&entry, data.bytes + at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		found |= entry.d_tag == DT_SONAME;
	}
	elf_section_data_deinit(&data);
	return found;
}

/* Libraries that can be run as well (libc) have a name and an interpreter. */
static bool file_is_program(const struct elf_file *file)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		if (file->segments[i].p_type == PT_INTERP)
			return !file_has_soname(file);
	}
	return false;
}

static bool arena_reaches_functions(const struct functions *functions, uint64_t at, uint64_t room)
{
	uint64_t low = functions->low & ~(uint64_t)(PLAN_PAGE - 1);
	int64_t first = (int64_t)(at - low), last = (int64_t)(at + room - functions->high);

	return (first >= 0 ? at + room - low : functions->high - at) <= ARENA_REACH_BYTES &&
	       (first < 0 ? last < 0 && low - at >= room : at >= functions->high);
}

/* Where the module's data is too large for all of it to be in reach: its code is, and instructions
 * that name data out of reach are not moved. */
static bool arena_reaches_code(const struct functions *functions, uint64_t at, uint64_t room)
{
	uint64_t low = functions->low & ~(uint64_t)(PLAN_PAGE - 1);
	uint64_t farthest = low - at >= room && (int64_t)(low - at) > 0
				    ? functions->targets_high - at
				    : at + room - functions->targets_low;

	return ((int64_t)(low - at) >= (int64_t)room || (int64_t)(at - functions->high) >= 0) &&
	       farthest <= ARENA_REACH_BYTES;
}

/* Below the module: above it is its data. */
static uint64_t choose_address_below_giant(uint64_t low, enum plan_arena_placement_kind placement,
					   uint64_t room)
{
	return low - ROUND_UP_TO_PAGE(room) - (uint64_t)placement * GIANT_PLACEMENT_DISTANCE;
}

int plan_choose_arena_address(const struct elf_file *file, const struct functions *functions,
			      enum plan_arena_placement_kind placement, uint64_t room,
			      uint64_t *ret)
{
	/* Distances of the arena's start from the module's, or its end. */
	static const int64_t programs[] = {-(int64_t)GIB, -(int64_t)(GIB / 2), (int64_t)GIB};
	static const int64_t libraries[] = {(int64_t)GIB, -(int64_t)GIB, -(int64_t)(GIB + GIB / 2)};
	uint64_t low = functions->low & ~(uint64_t)(PLAN_PAGE - 1);
	uint64_t high = ROUND_UP_TO_PAGE(functions->high), at;

	if (placement == PLAN_ARENA_PLACEMENT_BEHIND_MODULE) {
		at = high;
	} else if (file->type == ET_EXEC) {
		bool fits = low > ARENA_LOWEST_VADDR && low - ARENA_LOWEST_VADDR > room;
		if (placement == PLAN_ARENA_PLACEMENT_FIRST && fits)
			at = low - ROUND_UP_TO_PAGE(room);
		else
			at = high + (placement == PLAN_ARENA_PLACEMENT_THIRD ? GIB / 2
				     : placement == PLAN_ARENA_PLACEMENT_FIRST || fits
					     ? GIB
					     : GIB + GIB / 4);
	} else {
		bool program = file_is_program(file);
		int64_t distance = (program ? programs : libraries)[placement];
		at = low + (uint64_t)distance;
	}
	if (!arena_reaches_functions(functions, at, room))
		at = high; /* a giant: as near as it can be */
	if (!arena_reaches_functions(functions, at, room))
		at = choose_address_below_giant(low,
						placement == PLAN_ARENA_PLACEMENT_BEHIND_MODULE
							? PLAN_ARENA_PLACEMENT_FIRST
							: placement,
						room);
	if (!arena_reaches_functions(functions, at, room) &&
	    !arena_reaches_code(functions, at, room))
		return -ENOSPC;
	*ret = at;
	return 0;
}
