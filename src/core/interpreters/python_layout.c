/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See python_layout.h. From CPython's headers of each version (Include/cpython/code.h,
 * frameobject.h, pystate.h; Include/internal/pycore_frame.h, pycore_interp.h, pycore_runtime.h).
 */
#include "core/interpreters/python_layout.h"

#include <string.h>

#include "common/array.h"
#include "core/interpreters/memory.h"

#define DEBUG_OFFSETS_BYTES_MAX 1024
#define DEBUG_OFFSETS_COOKIE    "xdebugpy"

/* What 3.8 to 3.10 have in common. */
#define LAYOUT_BEFORE_3_11                                                                         \
	.chain = PYTHON_CHAIN_CALL_A_FRAME, .runtime_finalizing = 16, .runtime_interpreters = 32,  \
	.interpreter_next = 0, .interpreter_threads = 8, .thread_next = 8, .thread_frame = 24,     \
	.thread_pthread = 176, .frame_size = 112, .frame_code = 32, .frame_previous = 24,          \
	.code_file = 104, .code_name = 112, .code_first_line = 40, .code_line_table = 120,         \
	.code_instructions = 48, .string_ascii = 48, .string_compact = 72

/* What 3.11 and later have in common. */
#define LAYOUT_FROM_3_11                                                                           \
	.position_kind = PYTHON_POSITION_POINTER, .line_table_kind = SPOOL_LINES_CPYTHON_3_11,     \
	.thread_next = 8, .frame_size = 80, .frame_position = 56, .code_file = 112,                \
	.code_name = 128, .code_line_table = 136, .function_closure = 72

static const struct python_layout python_layouts[] = {
	{.minor = 8,
	 LAYOUT_BEFORE_3_11,
	 .position_kind = PYTHON_POSITION_BYTES,
	 .line_table_kind = SPOOL_LINES_CPYTHON_3_6,
	 .runtime_thread_key = 1392,
	 .runtime_lock = 1152,
	 .interpreter_modules = 56,
	 .frame_position = 104,
	 .frame_generator = 96,
	 .task_coroutine = 112,
	 .task_name = 120,
	 .function_closure = 48},
	{.minor = 9,
	 LAYOUT_BEFORE_3_11,
	 .position_kind = PYTHON_POSITION_BYTES,
	 .line_table_kind = SPOOL_LINES_CPYTHON_3_6,
	 .runtime_thread_key = 584,
	 .runtime_lock = 352,
	 .interpreter_modules = 856,
	 .frame_position = 104,
	 .frame_generator = 96,
	 .task_coroutine = 152,
	 .task_name = 160,
	 .function_closure = 48},
	{.minor = 10,
	 LAYOUT_BEFORE_3_11,
	 .position_kind = PYTHON_POSITION_UNITS,
	 .line_table_kind = SPOOL_LINES_CPYTHON_3_10,
	 .runtime_thread_key = 584,
	 .runtime_lock = 352,
	 .interpreter_modules = 856,
	 .frame_position = 96,
	 .frame_generator = 88,
	 .task_coroutine = 160,
	 .task_name = 168,
	 .function_closure = 72},
	{.minor = 11,
	 LAYOUT_FROM_3_11,
	 .chain = PYTHON_CHAIN_ENTRY_MARKS,
	 .runtime_finalizing = 24,
	 .runtime_interpreters = 40,
	 .runtime_thread_key = 592,
	 .runtime_lock = 360,
	 .interpreter_next = 0,
	 .interpreter_threads = 16,
	 .interpreter_modules = 888,
	 .thread_frame = 56,
	 .thread_pthread = 152,
	 .thread_tid = 160,
	 .thread_chunk = 296,
	 .has_cframe = true,
	 .cframe_current = 8,
	 .cframe_previous = 16,
	 .frame_code = 32,
	 .frame_previous = 48,
	 .frame_owner = 69,
	 .frame_is_entry = 68,
	 .frame_stack_top = 64,
	 .generator_frame = 80,
	 .task_coroutine = 136,
	 .task_name = 144,
	 .code_first_line = 72,
	 .code_instructions = 184,
	 .string_ascii = 48,
	 .string_compact = 72},
	{.minor = 12,
	 LAYOUT_FROM_3_11,
	 .chain = PYTHON_CHAIN_SHIMS,
	 .runtime_finalizing = 24,
	 .runtime_interpreters = 40,
	 .runtime_thread_key = 1544,
	 .interpreter_next = 0,
	 .interpreter_threads = 72,
	 .interpreter_lock = 384,
	 .interpreter_modules = 944,
	 .thread_frame = 56,
	 .thread_pthread = 136,
	 .thread_tid = 144,
	 .thread_chunk = 232,
	 .has_cframe = true,
	 .cframe_current = 0,
	 .cframe_previous = 8,
	 .frame_code = 0,
	 .frame_previous = 8,
	 .frame_owner = 70,
	 .generator_frame = 72,
	 .task_coroutine = 136,
	 .task_name = 144,
	 .code_first_line = 68,
	 .code_instructions = 192,
	 .string_ascii = 40,
	 .string_compact = 56},
	/* All else stands in their own tables. */
	{.minor = 13,
	 LAYOUT_FROM_3_11,
	 .chain = PYTHON_CHAIN_SHIMS,
	 .debug_offsets = {584, 48, 152, 224, 272, 536, 7},
	 .runtime_thread_key = 2160,
	 .generator_frame = 72,
	 .task_coroutine = 120,
	 .task_name = 128},
	{.minor = 14,
	 LAYOUT_FROM_3_11,
	 .chain = PYTHON_CHAIN_SHIMS,
	 .debug_offsets = {760, 48, 176, 248, 312, 616, 8},
	 .runtime_thread_key = 2336},
};

const struct python_layout *python_layout_find(uint32_t minor)
{
	for (unsigned i = 0; i < ARRAY_SIZE(python_layouts); i++) {
		if (python_layouts[i].minor == minor)
			return &python_layouts[i];
	}
	return NULL;
}

/* In a table of words, behind the size of a group's structure: the offset of its member. */
static uint16_t get_debug_offset(const uint64_t *words, uint32_t group, uint32_t member)
{
	uint64_t offset = words[group / 8 + 1 + member];

	return offset < UINT16_MAX ? (uint16_t)offset : UINT16_MAX;
}

static void copy_debug_offsets(struct python_layout *layout, const uint64_t *words)
{
	uint32_t thread = layout->debug_offsets.thread, frame = layout->debug_offsets.frame,
		 code = layout->debug_offsets.code;

	layout->runtime_finalizing = get_debug_offset(words, 24, 0);
	layout->runtime_interpreters = get_debug_offset(words, 24, 1);
	layout->interpreter_next = get_debug_offset(words, layout->debug_offsets.interpreter, 1);
	layout->interpreter_threads = get_debug_offset(words, layout->debug_offsets.interpreter, 2);
	layout->interpreter_modules = get_debug_offset(words, layout->debug_offsets.interpreter, 4);
	layout->interpreter_lock = get_debug_offset(words, layout->debug_offsets.interpreter,
						    layout->debug_offsets.lock_member);
	layout->thread_next = get_debug_offset(words, thread, 1);
	layout->thread_frame = get_debug_offset(words, thread, 3);
	layout->thread_pthread = get_debug_offset(words, thread, 4);
	layout->thread_tid = get_debug_offset(words, thread, 5);
	layout->thread_chunk = get_debug_offset(words, thread, 6);
	layout->frame_previous = get_debug_offset(words, frame, 0);
	layout->frame_code = get_debug_offset(words, frame, 1);
	layout->frame_position = get_debug_offset(words, frame, 2);
	layout->frame_owner = get_debug_offset(words, frame, 4);
	layout->code_file = get_debug_offset(words, code, 0);
	layout->code_name = get_debug_offset(words, code, 2);
	layout->code_line_table = get_debug_offset(words, code, 3);
	layout->code_first_line = get_debug_offset(words, code, 4);
	layout->code_instructions = get_debug_offset(words, code, 8);
	layout->string_ascii = get_debug_offset(words, layout->debug_offsets.string, 2);
	layout->string_compact = (uint16_t)(layout->string_ascii + 16);
}

static bool is_layout_readable(const struct python_layout *layout)
{
	return layout->frame_previous + 8u <= PYTHON_FRAME_SIZE_MAX &&
	       layout->frame_code + 8u <= PYTHON_FRAME_SIZE_MAX &&
	       layout->frame_position + 8u <= PYTHON_FRAME_SIZE_MAX &&
	       layout->frame_owner < PYTHON_FRAME_SIZE_MAX &&
	       layout->code_file + 8u <= PYTHON_CODE_SIZE_MAX &&
	       layout->code_name + 8u <= PYTHON_CODE_SIZE_MAX &&
	       layout->code_line_table + 8u <= PYTHON_CODE_SIZE_MAX &&
	       layout->code_first_line + 4u <= PYTHON_CODE_SIZE_MAX &&
	       layout->code_instructions < UINT16_MAX && layout->thread_frame < UINT16_MAX &&
	       layout->thread_pthread < UINT16_MAX;
}

bool python_layout_copy_debug_offsets(struct python_layout *ret, const struct python_layout *layout,
				      uint64_t runtime)
{
	uint64_t words[DEBUG_OFFSETS_BYTES_MAX / 8];

	if (!memory_read_checked(runtime, words, layout->debug_offsets.size) ||
	    memcmp(words, DEBUG_OFFSETS_COOKIE, 8) || (words[1] >> 16 & 255) != layout->minor ||
	    words[2])
		return false;
	*ret = *layout;
	copy_debug_offsets(ret, words);
	ret->frame_size = PYTHON_FRAME_SIZE_MAX;
	return is_layout_readable(ret);
}

const struct python_layout *python_layout_read_debug_offsets(const struct python_layout *layout,
							     uint64_t runtime)
{
	static struct python_layout layouts[4]; /* of the interpreters of this process */
	static unsigned count;
	struct python_layout *ret = &layouts[count];

	if (count == ARRAY_SIZE(layouts) || !python_layout_copy_debug_offsets(ret, layout, runtime))
		return NULL;
	count++;
	return ret;
}

bool python_is_free_threaded(uint64_t runtime)
{
	uint64_t words[3];

	return memory_read_checked(runtime, words, sizeof(words)) &&
	       !memcmp(words, DEBUG_OFFSETS_COOKIE, 8) && words[2];
}
