/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What instrumented programs call in libkymo-dl: a stable C ABI, append only. Everything may be
 * called from any thread at any time; without a session it does nothing.
 *
 * A program defines its regions once and keeps the ids; enter and leave then are one load and one
 * jump to libkymo. They use general registers only and change none but those that a C function may
 * change, and no errno: who calls them from the midst of other code saves rax, rcx, rdx, rsi, rdi
 * and r8 to r11, and no vector registers. The defining calls are ordinary ones: the first of them
 * loads libkymo (dlopen(3)), so it must not come from a signal handler.
 */
#ifndef KYMO_LIBKYMO_DL_KYMO_DL_H
#define KYMO_LIBKYMO_DL_KYMO_DL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The id of a region; the same id for the same (category, name). A category of NULL is "host". 0:
 * nothing is recorded, and calls with it do nothing. Stable in forked children. */
uint32_t kymo_dl_region_define(const char *category, const char *name);
/* The function at a code address, which is named when results are made. */
uint32_t kymo_dl_function_define(uint64_t address);

void kymo_dl_enter(uint32_t region);
/* Ends the innermost open `region` of the thread, with whatever is open inside it. */
void kymo_dl_leave(uint32_t region);

/* Is libkymo there and at work? Loads it if need be. */
int kymo_dl_active(void);
/* libkymo was started meanwhile by somebody else: binds the user API to it. */
void kymo_dl_connect(void);

#ifdef __cplusplus
}
#endif

#endif
