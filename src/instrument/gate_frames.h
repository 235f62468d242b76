/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwind tables of the gate code's copies, behind each copy in the gate pages: those that the
 * assembler made for the original (gate.S), with the copy's address.
 */
#ifndef KYMO_INSTRUMENT_GATE_FRAMES_H
#define KYMO_INSTRUMENT_GATE_FRAMES_H

#include <stdint.h>

/* While the pages can still be written. */
void gate_frames_write(uint8_t *gate);
/* .eh_frame_hdr of the copy, or NULL. */
const void *gate_frames(const uint8_t *gate);

#endif
