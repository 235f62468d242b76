/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Debuggers are notified of arenas, by the interface that gdb and lldb have for run-time compilers
 * (gdb manual, "JIT Compilation Interface"), so that they find stubs' unwind tables.
 */
#ifndef KYMO_INSTRUMENT_JIT_H
#define KYMO_INSTRUMENT_JIT_H

#include "instrument/arena.h"

/* While the trampoline pages can still be written. Writes an ELF image for the debugger there. */
void jit_write_stub_image_for_debuggers(uint8_t *start, const struct plan_header *plan);
/* The arena is in use from now on. */
void jit_register_arena(const struct arena *arena);

#endif
