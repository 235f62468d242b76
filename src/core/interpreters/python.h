/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CPython: inside this room.
 */
#ifndef KYMO_CORE_INTERPRETERS_PYTHON_H
#define KYMO_CORE_INTERPRETERS_PYTHON_H

#include "core/interpreters/code_table.h"
#include "core/interpreters/kind.h"
#include "core/interpreters/python_layout.h"

/* Places in interpreter_kind_python.symbols. */
enum python_symbol { PYTHON_RUNTIME, PYTHON_EVALUATE, PYTHON_VERSION };

#define PYTHON_CODE_HIDDEN UINT32_MAX

/* The id of a code object, described in the spool if it was not yet; 0: it is none.
 * PYTHON_CODE_HIDDEN: it is the interpreter's own and no code of the program. */
uint32_t python_code_find_id(struct interpreted_walk *walk, uint64_t address);

/* The id of a frame that is no code, but has this name. There are so many of them at most
 * (interpreters_set_task_name_maximum()); 0: none may be. */
uint32_t python_code_find_named_id(struct interpreted_walk *walk, const uint8_t *name,
				   uint32_t size);
void python_code_reset_named(void);

/* Writes a str as UTF-8, cut at `most` bytes; false: it is none that can be read. `scratch` has
 * INTERPRETED_SCRATCH_SIZE bytes, whose second half is used. */
bool python_copy_text(const struct python_layout *layout, uint64_t object, uint8_t *scratch,
		      uint8_t *to, uint32_t most, uint32_t *ret_size);

/* Of the frames from this one on, which may be read directly. False: one of them is none. */
bool python_hash_frames(const struct python_layout *layout, uint64_t frame, uint64_t *ret);

#endif
