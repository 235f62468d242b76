/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Whether five bytes at a function's entry can become a jump: whole instructions that may move, and
 * nothing that may arrive among them. The bytes may reach into padding that follows, but never to
 * before the entry (what lies there may be the end of a function that nobody listed).
 */
#include <errno.h>
#include <string.h>

#include "binary/instruction.h"
#include "binary/plan/private.h"
#include "binary/plan/relocate.h"

#define ENDBR64_LENGTH 4u

struct patch_window_search_state {
	const struct functions *functions;
	const uint8_t *bytes; /* at the entry */
	uint64_t at;
	uint32_t size;                    /* of instructions taken */
	uint32_t function_bytes_left;     /* of the function behind the entry */
	uint32_t bytes_left_with_padding; /* the same with padding */
	uint8_t last_instruction_flow;    /* of the last one */
	bool has_only_nops;               /* nothing but nops so far */
};

static bool flow_ends_block(uint8_t flow)
{
	return flow == INSTRUCTION_JUMP || flow == INSTRUCTION_JUMP_INDIRECT ||
	       flow == INSTRUCTION_RETURN || flow == INSTRUCTION_STOP;
}

bool plan_is_padding_instruction(const uint8_t *bytes, const struct instruction *instruction)
{
	if (bytes[0] == 0xcc)
		return true;
	if (instruction->has_vector_prefix ||
	    instruction->prefix_bits & (INSTRUCTION_PREFIX_F2 | INSTRUCTION_PREFIX_F3))
		return false;
	return (instruction->opcode_map == 0 && instruction->opcode == 0x90) ||
	       (instruction->opcode_map == 1 && instruction->opcode == 0x1f);
}

/* The patch reaches over bytes that are never run: only padding may be changed. */
static bool has_only_padding_behind_window(const struct patch_window_search_state *window)
{
	struct instruction instruction;
	uint32_t limit = window->bytes_left_with_padding + 16;
	size_t left = 0;

	functions_get_code_bytes_at(window->functions, window->at, &left);
	if (limit > left)
		limit = (uint32_t)left;
	if (window->bytes_left_with_padding < JUMP_INSTRUCTION_BYTES)
		return false;
	for (uint32_t at = window->size; at < JUMP_INSTRUCTION_BYTES; at += instruction.length) {
		if (!instruction_decode(window->bytes + at, limit - at, window->at + at,
					&instruction) ||
		    !plan_is_padding_instruction(window->bytes + at, &instruction))
			return false;
	}
	return true;
}

/* Where the next function is too near, its beginning is no target in this one. */
static bool is_jump_target_in_window(const struct patch_window_search_state *window,
				     bool short_of_room)
{
	uint32_t end =
		window->size > JUMP_INSTRUCTION_BYTES ? window->size : JUMP_INSTRUCTION_BYTES;

	if (short_of_room && end > window->function_bytes_left)
		end = window->function_bytes_left;
	for (uint32_t i = 1; i < end; i++) {
		if (functions_address_is_control_target(window->functions, window->at + i))
			return true;
	}
	return false;
}

/* Takes whole instructions until there are enough. */
static enum plan_reason
extend_window_to_whole_instructions(struct patch_window_search_state *window)
{
	struct instruction instruction;

	while (window->size < JUMP_INSTRUCTION_BYTES) {
		if (window->size >= window->function_bytes_left)
			return PLAN_TOO_SHORT;
		if (!instruction_decode(window->bytes + window->size,
					window->function_bytes_left - window->size,
					window->at + window->size, &instruction))
			return PLAN_UNDECODABLE;
		window->has_only_nops &=
			plan_is_padding_instruction(window->bytes + window->size, &instruction);
		window->size += instruction.length;
		window->last_instruction_flow = instruction.flow;
		if (flow_ends_block(instruction.flow))
			break;
		/* It would return into the patch. */
		if (window->size < JUMP_INSTRUCTION_BYTES &&
		    (instruction.flow == INSTRUCTION_CALL ||
		     instruction.flow == INSTRUCTION_CALL_INDIRECT))
			return PLAN_UNRELOCATABLE;
	}
	if (window->size < JUMP_INSTRUCTION_BYTES && !has_only_padding_behind_window(window))
		return PLAN_TOO_SHORT;
	return PLAN_PATCHABLE;
}

static bool is_endbr64(const uint8_t *bytes, uint32_t size)
{
	static const uint8_t endbr64[ENDBR64_LENGTH] = {0xf3, 0x0f, 0x1e, 0xfa};

	return size >= ENDBR64_LENGTH && !memcmp(bytes, endbr64, ENDBR64_LENGTH);
}

void plan_patch_window_find_at_entry(const struct functions *functions,
				     const struct function *function,
				     struct plan_patch_window_info *ret)
{
	struct patch_window_search_state window = {.functions = functions,
						   .at = function->vaddr,
						   .function_bytes_left = function->size,
						   .bytes_left_with_padding = function->space,
						   .has_only_nops = true};
	size_t left = 0;

	*ret = (struct plan_patch_window_info){.at = function->vaddr, .reason = PLAN_UNDECODABLE};
	window.bytes = functions_get_code_bytes_at(functions, function->vaddr, &left);
	if (!window.bytes || left < function->size || left < window.bytes_left_with_padding)
		return;
	if (is_endbr64(window.bytes, window.function_bytes_left)) {
		window.bytes += ENDBR64_LENGTH;
		window.at += ENDBR64_LENGTH;
		window.function_bytes_left -= ENDBR64_LENGTH;
		window.bytes_left_with_padding -= ENDBR64_LENGTH;
	}
	ret->at = window.at;
	ret->reason = (uint8_t)extend_window_to_whole_instructions(&window);
	if (ret->reason != PLAN_UNDECODABLE &&
	    is_jump_target_in_window(&window, ret->reason == PLAN_TOO_SHORT))
		ret->reason = PLAN_TARGET_IN_WINDOW;
	ret->size = window.size;
	ret->patch_how = window.has_only_nops ? PLAN_HOW_NOPS : PLAN_HOW_JUMP;
}

/* Also not because of what an instruction of it does. */
static enum plan_reason find_plan_reason_of_window(struct patch_window_search_state *window)
{
	enum plan_reason reason = extend_window_to_whole_instructions(window);
	struct instruction instruction;
	uint8_t moved[RELOCATED_INSTRUCTION_BYTES_MAX];

	if (reason)
		return reason;
	if (is_jump_target_in_window(window, false))
		return PLAN_TARGET_IN_WINDOW;
	for (uint32_t done = 0; done < window->size; done += instruction.length) {
		uint64_t at = window->at + done;

		instruction_decode(window->bytes + done, window->size - done, at, &instruction);
		if (relocate_instruction(window->bytes + done, &instruction, at, at, window->at,
					 window->at + window->size, moved) == -ENOTSUP)
			return PLAN_UNRELOCATABLE;
	}
	return PLAN_PATCHABLE;
}

bool plan_patch_window_can_move(const struct functions *functions,
				const struct plan_patch_window_info *window)
{
	struct patch_window_search_state place = {.functions = functions,
						  .at = window->at,
						  .function_bytes_left = window->size,
						  .bytes_left_with_padding =
							  window->size > JUMP_INSTRUCTION_BYTES
								  ? window->size
								  : JUMP_INSTRUCTION_BYTES,
						  .has_only_nops = true};
	size_t left;

	place.bytes = functions_get_code_bytes_at(functions, window->at, &left);
	if (place.bytes_left_with_padding > left)
		place.bytes_left_with_padding = (uint32_t)left;
	return place.bytes && window->size <= left &&
	       find_plan_reason_of_window(&place) != PLAN_UNRELOCATABLE;
}

void plan_patch_window_find_in_block(const struct functions *functions, uint64_t vaddr,
				     uint32_t size, uint32_t room,
				     struct plan_patch_window_info *ret)
{
	struct instruction instruction;
	const uint8_t *bytes;
	size_t left = 0;

	*ret = (struct plan_patch_window_info){
		.at = vaddr, .reason = PLAN_TOO_SHORT, .patch_how = PLAN_HOW_JUMP};
	bytes = functions_get_code_bytes_at(functions, vaddr, &left);
	if (!bytes || room > left || size > room)
		return;
	for (uint32_t at = 0; at < size; at += instruction.length) {
		struct patch_window_search_state window = {.functions = functions,
							   .bytes = bytes + at,
							   .at = vaddr + at,
							   .function_bytes_left = size - at,
							   .bytes_left_with_padding = room - at,
							   .has_only_nops = true};
		enum plan_reason reason;

		if (!instruction_decode(bytes + at, size - at, vaddr + at, &instruction))
			return;
		if (at == 0 && is_endbr64(bytes, size))
			continue;
		reason = find_plan_reason_of_window(&window);
		if (reason == PLAN_PATCHABLE) {
			ret->at = window.at;
			ret->size = window.size;
		}
		if (reason == PLAN_PATCHABLE || at == 0)
			ret->reason = (uint8_t)reason;
		if (reason == PLAN_PATCHABLE)
			return;
	}
}
