/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * libunwind as a second opinion, loaded with dlopen: linking it would replace backtrace() and the
 * C++ runtime's unwinder by its own, unnoticed.
 */
#ifndef KYMO_TESTS_PEER_LIBUNWIND_H
#define KYMO_TESTS_PEER_LIBUNWIND_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

bool peer_libunwind_open(void);
/* Frames of an interrupted context by unw_step; as unwind_walk_stack() stores them. */
uint32_t peer_libunwind_step(ucontext_t *context, uint64_t *frames, uint32_t maximum);
/* The same by unw_backtrace2 where the library has it, else by unw_backtrace from here. */
uint32_t peer_libunwind_backtrace(ucontext_t *context, uint64_t *frames, uint32_t maximum);
/* What peer_libunwind_backtrace calls. */
const char *peer_libunwind_backtrace_name(void);

#endif
