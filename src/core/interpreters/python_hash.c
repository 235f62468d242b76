/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A value that differs where the frames of CPython do, for threads that look at their own stack
 * again and again: one pass along the chain of frames, which reads what tells frames and code
 * objects apart and looks nothing up.
 *
 * Frames of different calls of the evaluation loop need not be told apart, but for the marks of
 * 3.11: later versions have a shim in the chain, and earlier ones a call a frame.
 */
#include "common/fold_hash.h"
#include "core/interpreters/python.h"

#define HASH_FRAMES_MAX 100000u
#define HASH_FRAME_TAG  3u /* of pointers to objects (3.14) */
#define HASH_OWNER_SHIM 3u
#define HASH_SECOND     0xd6e8feb86659fd93ull

INTERPRETED_UNSANITIZED
static inline uint64_t load_word(uint64_t address)
{
	return *(const uint64_t *)(uintptr_t)address;
}

INTERPRETED_UNSANITIZED
static inline uint8_t load_byte(uint64_t address)
{
	return *(const uint8_t *)(uintptr_t)address;
}

/* What a code object points to tells it from others that had its address. */
static inline uint64_t identify_code(const struct python_layout *layout, uint64_t code)
{
	if (!memory_is_plausible_pointer(code))
		return 0;
	return load_word(code + layout->code_name) ^ load_word(code + layout->code_line_table)
							     << 20;
}

bool python_hash_frames(const struct python_layout *layout, uint64_t frame, uint64_t *ret)
{
	uint64_t hash = HASH_SECOND;

	for (uint32_t i = 0; frame; i++) {
		uint64_t code, position, marks = 0;
		bool has_code = true;

		if (i == HASH_FRAMES_MAX || !memory_is_plausible_pointer(frame))
			return false;
		code = load_word(frame + layout->frame_code) & ~(uint64_t)HASH_FRAME_TAG;
		position = load_word(frame + layout->frame_position);
		if (layout->position_kind != PYTHON_POSITION_POINTER)
			position = (uint32_t)position;
		if (layout->chain == PYTHON_CHAIN_SHIMS && layout->frame_owner)
			has_code = load_byte(frame + layout->frame_owner) < HASH_OWNER_SHIM;
		if (layout->frame_is_entry)
			marks = load_byte(frame + layout->frame_is_entry);
		/* While 3.11 takes the last frame off, its code may be gone. */
		if (i == 0 && layout->frame_stack_top &&
		    (int32_t)load_word(frame + layout->frame_stack_top) >= 0)
			has_code = false;
		if (has_code)
			marks ^= identify_code(layout, code);
		hash = fold_hash_multiply(hash ^ code ^ marks << 8,
					  position ^ marks ^ FOLD_HASH_FACTOR);
		frame = load_word(frame + layout->frame_previous);
	}
	*ret = hash;
	return true;
}
