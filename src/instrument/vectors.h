/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calling code that may use vector registers from where all of them may be live.
 */
#ifndef KYMO_INSTRUMENT_VECTORS_H
#define KYMO_INSTRUMENT_VECTORS_H

#include <stdint.h>

/* Looks at what the processor has. Before the first call of vectors_call_preserving_registers(). */
void vectors_detect_saved_states(void);

/* function(argument), with the vector and x87 state as before afterwards. `area`: 64-byte aligned,
 * SHADOW_THREAD_VECTOR_AREA_BYTES bytes, its bytes 512..575 zero at first. */
uint64_t vectors_call_preserving_registers(void *area, uint64_t (*function)(void *),
					   void *argument);

#endif
