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
#include "binary/plan_internal.h"
#include "binary/relocate.h"

#define ENDBR_SIZE 4u

struct window {
	const struct functions *functions;
	const uint8_t *bytes; /* at the entry */
	uint64_t at;
	uint32_t size; /* of instructions taken */
	uint32_t left; /* of the function behind the entry */
	uint32_t room; /* the same with padding */
	uint8_t flow;  /* of the last one */
	bool nops;     /* nothing but nops so far */
};

static bool flow_ends(uint8_t flow)
{
	return flow == INSTRUCTION_JUMP || flow == INSTRUCTION_JUMP_INDIRECT ||
	       flow == INSTRUCTION_RETURN || flow == INSTRUCTION_STOP;
}

bool plan_window_is_padding(const uint8_t *bytes, const struct instruction *instruction)
{
	if (bytes[0] == 0xcc)
		return true;
	if (instruction->vex ||
	    instruction->prefixes & (INSTRUCTION_PREFIX_F2 | INSTRUCTION_PREFIX_F3))
		return false;
	return (instruction->map == 0 && instruction->opcode == 0x90) ||
	       (instruction->map == 1 && instruction->opcode == 0x1f);
}

/* The patch reaches over bytes that are never run: only padding may be changed. */
static bool padding_follows(const struct window *window)
{
	struct instruction instruction;
	uint32_t limit = window->room + 16;
	size_t left = 0;

	functions_bytes(window->functions, window->at, &left);
	if (limit > left)
		limit = (uint32_t)left;
	if (window->room < JUMP_SIZE)
		return false;
	for (uint32_t at = window->size; at < JUMP_SIZE; at += instruction.length) {
		if (!instruction_decode(window->bytes + at, limit - at, window->at + at,
					&instruction) ||
		    !plan_window_is_padding(window->bytes + at, &instruction))
			return false;
	}
	return true;
}

/* Where the next function is too near, its beginning is no target in this one. */
static bool target_inside(const struct window *window, bool short_of_room)
{
	uint32_t end = window->size > JUMP_SIZE ? window->size : JUMP_SIZE;

	if (short_of_room && end > window->left)
		end = window->left;
	for (uint32_t i = 1; i < end; i++) {
		if (functions_is_target(window->functions, window->at + i))
			return true;
	}
	return false;
}

/* Takes whole instructions until there are enough. */
static enum plan_reason take(struct window *window)
{
	struct instruction instruction;

	while (window->size < JUMP_SIZE) {
		if (window->size >= window->left)
			return PLAN_TOO_SHORT;
		if (!instruction_decode(window->bytes + window->size, window->left - window->size,
					window->at + window->size, &instruction))
			return PLAN_UNDECODABLE;
		window->nops &= plan_window_is_padding(window->bytes + window->size, &instruction);
		window->size += instruction.length;
		window->flow = instruction.flow;
		if (flow_ends(instruction.flow))
			break;
		/* It would return into the patch. */
		if (window->size < JUMP_SIZE && (instruction.flow == INSTRUCTION_CALL ||
						 instruction.flow == INSTRUCTION_CALL_INDIRECT))
			return PLAN_UNRELOCATABLE;
	}
	if (window->size < JUMP_SIZE && !padding_follows(window))
		return PLAN_TOO_SHORT;
	return PLAN_PATCHABLE;
}

static bool is_endbr(const uint8_t *bytes, uint32_t size)
{
	static const uint8_t endbr64[ENDBR_SIZE] = {0xf3, 0x0f, 0x1e, 0xfa};

	return size >= ENDBR_SIZE && !memcmp(bytes, endbr64, ENDBR_SIZE);
}

void plan_window_find(const struct functions *functions, const struct function *function,
		      struct plan_window *ret)
{
	struct window window = {.functions = functions,
				.at = function->vaddr,
				.left = function->size,
				.room = function->space,
				.nops = true};
	size_t left = 0;

	*ret = (struct plan_window){.at = function->vaddr, .reason = PLAN_UNDECODABLE};
	window.bytes = functions_bytes(functions, function->vaddr, &left);
	if (!window.bytes || left < function->size || left < window.room)
		return;
	if (is_endbr(window.bytes, window.left)) {
		window.bytes += ENDBR_SIZE;
		window.at += ENDBR_SIZE;
		window.left -= ENDBR_SIZE;
		window.room -= ENDBR_SIZE;
	}
	ret->at = window.at;
	ret->reason = (uint8_t)take(&window);
	if (ret->reason != PLAN_UNDECODABLE &&
	    target_inside(&window, ret->reason == PLAN_TOO_SHORT))
		ret->reason = PLAN_TARGET_IN_WINDOW;
	ret->size = window.size;
	ret->how = window.nops ? PLAN_HOW_NOPS : PLAN_HOW_JUMP;
}

/* Also not because of what an instruction of it does. */
static enum plan_reason try_place(struct window *window)
{
	enum plan_reason reason = take(window);
	struct instruction instruction;
	uint8_t moved[RELOCATE_SIZE_MAX];

	if (reason)
		return reason;
	if (target_inside(window, false))
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

bool plan_window_moves(const struct functions *functions, const struct plan_window *window)
{
	struct window place = {.functions = functions,
			       .at = window->at,
			       .left = window->size,
			       .room = window->size > JUMP_SIZE ? window->size : JUMP_SIZE,
			       .nops = true};
	size_t left;

	place.bytes = functions_bytes(functions, window->at, &left);
	if (place.room > left)
		place.room = (uint32_t)left;
	return place.bytes && window->size <= left && try_place(&place) != PLAN_UNRELOCATABLE;
}

void plan_window_find_place(const struct functions *functions, uint64_t vaddr, uint32_t size,
			    uint32_t room, struct plan_window *ret)
{
	struct instruction instruction;
	const uint8_t *bytes;
	size_t left = 0;

	*ret = (struct plan_window){.at = vaddr, .reason = PLAN_TOO_SHORT, .how = PLAN_HOW_JUMP};
	bytes = functions_bytes(functions, vaddr, &left);
	if (!bytes || room > left || size > room)
		return;
	for (uint32_t at = 0; at < size; at += instruction.length) {
		struct window window = {.functions = functions,
					.bytes = bytes + at,
					.at = vaddr + at,
					.left = size - at,
					.room = room - at,
					.nops = true};
		enum plan_reason reason;

		if (!instruction_decode(bytes + at, size - at, vaddr + at, &instruction))
			return;
		if (at == 0 && is_endbr(bytes, size))
			continue;
		reason = try_place(&window);
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
