/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the versions of CPython keep what a walk reads: byte offsets in its structures, one row a
 * minor version, since patch releases keep them. From 3.13 on the interpreter has a table of them
 * itself (_Py_DebugOffsets), and the row says only where in the table they stand.
 */
#ifndef KYMO_CORE_INTERPRETERS_PYTHON_LAYOUT_H
#define KYMO_CORE_INTERPRETERS_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "kymo/spool.h"

/* What the chain of frames says of calls of the evaluation loop. */
enum python_frame_chain {
	PYTHON_CHAIN_CALL_A_FRAME, /* each frame has one (up to 3.10) */
	PYTHON_CHAIN_ENTRY_MARKS,  /* the outermost frame of one is marked (3.11) */
	PYTHON_CHAIN_SHIMS         /* the caller of its outermost frame is a shim on the C stack */
};

/* What a frame keeps of where it is. */
enum python_position_kind {
	PYTHON_POSITION_BYTES,  /* of the last instruction, an int; -1: none */
	PYTHON_POSITION_UNITS,  /* the same in units of two bytes */
	PYTHON_POSITION_POINTER /* into the code */
};

struct python_layout {
	uint32_t minor; /* of 3.x */
	enum python_frame_chain chain;
	enum python_position_kind position_kind;
	enum spool_line_table line_table_kind;
	/* _PyRuntime */
	uint16_t runtime_finalizing, runtime_interpreters, runtime_thread_key;
	uint16_t runtime_lock; /* the global lock itself; 0: the interpreter points to it */
	/* PyInterpreterState; `interpreter_modules` is sys.modules. */
	uint16_t interpreter_next, interpreter_threads, interpreter_lock, interpreter_modules;
	/* PyThreadState. `thread_frame` is the innermost frame, or a _PyCFrame that has it. */
	uint16_t thread_next, thread_frame, thread_pthread, thread_tid, thread_chunk;
	/* _PyCFrame; has_cframe: there is one. */
	bool has_cframe;
	uint16_t cframe_current, cframe_previous;
	/* the frame: bytes to read of it, and what is in them */
	uint16_t frame_size, frame_code, frame_previous, frame_position, frame_owner,
		frame_is_entry;
	/* Where 3.11 has the number of values on the frame's stack, an int; negative: it executes.
	 * 0: of no interest. */
	uint16_t frame_stack_top;
	/* The generator or coroutine that a frame is of: where the frame has it, or else (0) where
	 * the frame is in it. */
	uint16_t frame_generator, generator_frame;
	/* Tasks of _asyncio; 0: running tasks are kept otherwise. What a task waits for is before
	 * its coroutine. */
	uint16_t task_coroutine, task_name;
	/* PyFunctionObject: its closure */
	uint16_t function_closure;
	/* PyCodeObject */
	uint16_t code_file, code_name, code_first_line, code_line_table, code_instructions;
	/* str: where the text of ASCII and of other compact strings begins */
	uint16_t string_ascii, string_compact;
	/* Where groups of _Py_DebugOffsets begin, and which member of the interpreter's is the
	 * pointer to the global lock; size 0: there is no such table, and all is in the row. */
	struct {
		uint16_t size, interpreter, thread, frame, code, string, lock_member;
	} debug_offsets;
};

#define PYTHON_FRAME_SIZE_MAX 112 /* what is read of a frame, any version */
#define PYTHON_CODE_SIZE_MAX  208 /* up to its instructions, any version */

/* NULL: no such version. */
const struct python_layout *python_layout_find(uint32_t minor);
/* The layout as the interpreter's own table says, which is at the beginning of _PyRuntime. NULL: it
 * says something that is not supported (builds without a global lock). Background thread only. */
const struct python_layout *python_layout_read_debug_offsets(const struct python_layout *layout,
							     uint64_t runtime);
/* The same into memory of the caller's; false: not supported. Any thread. */
bool python_layout_copy_debug_offsets(struct python_layout *ret, const struct python_layout *layout,
				      uint64_t runtime);

/* Does _PyRuntime say that there is no global lock? */
bool python_is_free_threaded(uint64_t runtime);

#endif
