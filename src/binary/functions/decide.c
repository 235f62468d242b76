/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are left alone, after all that is known about them: the first reason that holds.
 *
 * Parts of functions (cold code) must be distinguished from functions: in the middle of a function,
 * memory below rsp may be in use, which a stub would overwrite. Their CFA mostly tells. Of those
 * without a frame that are neither called nor named anywhere, a part is what goes on in the middle
 * of another function, what tables or unwinding lead to, and what a single function jumps to if
 * that uses memory below rsp or it is not aligned (compilers align functions, not parts; and
 * functions that one other function calls, they mostly make a part of it). If one is missed, it is
 * seen as a call in tail position.
 */
#include "binary/functions/private.h"

#define FUNCTION_ALIGNMENT_BYTES 16

static bool is_linker_generated_code(const struct elf_file *file, uint64_t vaddr)
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

static enum plan_reason find_plan_reason_by_eh_frame_fde(const struct function_finder *finder,
							 const struct finder_function_facts *extra)
{
	const struct eh_frame_fde *frame;
	struct cfa_walk_state walk;

	if (!extra->frame)
		return PLAN_PATCHABLE;
	frame = &finder->frames.list[extra->frame - 1];
	cfa_walk_begin_at_frame(&walk, &finder->frames, frame);
	if (walk.cie->signal || walk.row.is_return_address_undefined)
		return PLAN_NO_RETURN_ADDRESS;
	if (!walk.row.known || walk.row.base != EH_FRAME_REGISTER_RSP || walk.row.offset != 8)
		return PLAN_FRAGMENT;
	return walk.row.is_return_address_moved ? PLAN_READS_RETURN : PLAN_PATCHABLE;
}

static bool is_part_of_other_function(const struct function_finder *finder,
				      const struct function *function,
				      const struct finder_function_facts *extra)
{
	if (finder_has_mark(finder, MARK_CALLED_OR_ADDRESS_TAKEN, function->vaddr))
		return false;
	if (extra->is_named_as_part)
		return true;
	if (extra->has_symbol)
		return false;
	if (extra->jumps_into_function_middle ||
	    finder_has_mark(finder, MARK_PROBABLE_FUNCTION_PART, function->vaddr))
		return true;
	if (extra->source == 0 || extra->source == SEVERAL_JUMP_SOURCES)
		return false;
	return extra->source_uses_red_zone || function->vaddr % FUNCTION_ALIGNMENT_BYTES;
}

static enum plan_reason decide_patchability(const struct function_finder *finder,
					    const struct function *function,
					    const struct finder_function_facts *extra)
{
	enum plan_reason reason;

	if (function->vaddr == finder->functions->entry)
		return PLAN_NO_RETURN_ADDRESS;
	reason = find_plan_reason_by_eh_frame_fde(finder, extra);
	if (reason)
		return reason;
	if (function->reason)
		return function->reason;
	if (is_part_of_other_function(finder, function, extra))
		return PLAN_FRAGMENT;
	if (!function->instruction_count)
		return PLAN_UNDECODABLE;
	/* Go's run time copies stacks and knows all return addresses on them. */
	if (extra->reads_return_address || (finder->has_go_runtime && !extra->frame))
		return PLAN_READS_RETURN;
	if (finder->functions->is_run_time_image ||
	    finder_has_mark(finder, MARK_USED_AS_DATA, function->vaddr))
		return PLAN_USED_AS_DATA;
	/* A loop to its own start would enter the stub each time round. */
	if (extra->jumps_to_own_entry)
		return PLAN_TARGET_IN_WINDOW;
	return PLAN_PATCHABLE;
}

void finder_set_plan_reason_of_linker_code(struct function_finder *finder)
{
	struct functions *functions = finder->functions;

	for (size_t i = 0; i < functions->count; i++) {
		if (is_linker_generated_code(finder->file, functions->list[i].vaddr))
			functions->list[i].reason = PLAN_LINKER_CODE;
	}
}

void finder_decide_patchability(struct function_finder *finder)
{
	struct functions *functions = finder->functions;

	for (size_t i = 0; i < functions->count; i++) {
		struct function *function = &functions->list[i];
		if (function->reason != PLAN_LINKER_CODE)
			function->reason = (uint8_t)decide_patchability(finder, function,
									&finder->function_facts[i]);
	}
}
