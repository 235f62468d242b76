/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calling code that may use vector registers from where all of them may be live.
 */
#ifndef KYMO_INSTRUMENT_VECTORS_H
#define KYMO_INSTRUMENT_VECTORS_H

#include <stdint.h>

/* Looks at what the processor has. Before the first call of vectors_keep(). */
void vectors_init(void);

/* function(argument), with the vector and x87 state as before afterwards. `area`: 64-byte aligned,
 * SHADOW_VECTORS bytes, its bytes 512..575 zero at first. */
uint64_t vectors_keep(void *area, uint64_t (*function)(void *), void *argument);

#endif
