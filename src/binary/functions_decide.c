/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are left alone, after all that is known about them: the first reason that holds.
 *
 * Parts of functions (cold code) must be told from functions: in the middle of a function, memory
 * below rsp may be in use, which a stub would overwrite. Their CFA mostly tells. Of those without a
 * frame that are neither called nor named anywhere, a part is what goes on in the middle of another
 * function, what tables or unwinding lead to, and what a single function jumps to if that uses
 * memory below rsp or it is not aligned (compilers align functions, not parts; and functions that
 * one other function calls, they mostly make a part of it). If one is missed, it is seen as a call
 * in tail position.
 */
#include "binary/functions_internal.h"

#define ALIGNMENT 16

static bool is_linker_code(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		if (vaddr - section->address < section->size && section->flags & SHF_EXECINSTR)
			return !strncmp(section->name, ".plt", 4) ||
			       !strcmp(section->name, ".iplt") || !strcmp(section->name, ".init") ||
			       !strcmp(section->name, ".fini");
	}
	return false;
}

static enum plan_reason frame_reason(const struct finder *finder,
				     const struct finder_function *extra)
{
	const struct frame *frame;
	struct frame_walk walk;

	if (!extra->frame)
		return PLAN_PATCHABLE;
	frame = &finder->frames.list[extra->frame - 1];
	frame_walk_start(&walk, &finder->frames, frame);
	if (walk.common->signal || walk.row.orphan)
		return PLAN_NO_RETURN_ADDRESS;
	if (!walk.row.known || walk.row.base != FRAME_RSP || walk.row.offset != 8)
		return PLAN_FRAGMENT;
	return walk.row.moved ? PLAN_READS_RETURN : PLAN_PATCHABLE;
}

static bool is_part(const struct finder *finder, const struct function *function,
		    const struct finder_function *extra)
{
	if (finder_is(finder, MARK_ENTRY, function->vaddr))
		return false;
	if (extra->named_part)
		return true;
	if (extra->has_symbol)
		return false;
	if (extra->jumps_aside || finder_is(finder, MARK_SUSPECT, function->vaddr))
		return true;
	if (extra->source == 0 || extra->source == SOURCE_MANY)
		return false;
	return extra->live_stack || function->vaddr % ALIGNMENT;
}

static enum plan_reason decide(const struct finder *finder, const struct function *function,
			       const struct finder_function *extra)
{
	enum plan_reason reason;

	if (function->vaddr == finder->functions->entry)
		return PLAN_NO_RETURN_ADDRESS;
	reason = frame_reason(finder, extra);
	if (reason)
		return reason;
	if (function->reason)
		return function->reason;
	if (is_part(finder, function, extra))
		return PLAN_FRAGMENT;
	if (!function->instructions)
		return PLAN_UNDECODABLE;
	/* Go's run time copies stacks and knows all return addresses on them. */
	if (extra->reads_return || (finder->go && !extra->frame))
		return PLAN_READS_RETURN;
	/* A loop to its own start would enter the stub each time round. */
	if (extra->enters_itself)
		return PLAN_TARGET_IN_WINDOW;
	return PLAN_PATCHABLE;
}

void finder_note_linker_code(struct finder *finder)
{
	struct functions *functions = finder->functions;

	for (size_t i = 0; i < functions->count; i++) {
		if (is_linker_code(finder->file, functions->list[i].vaddr))
			functions->list[i].reason = PLAN_LINKER_CODE;
	}
}

void finder_decide(struct finder *finder)
{
	struct functions *functions = finder->functions;

	for (size_t i = 0; i < functions->count; i++) {
		struct function *function = &functions->list[i];
		if (function->reason != PLAN_LINKER_CODE)
			function->reason = (uint8_t)decide(finder, function, &finder->extra[i]);
	}
}
