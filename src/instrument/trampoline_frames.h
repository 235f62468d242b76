/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Unwind tables of the trampoline code's copies, behind each copy in the trampoline pages: those
 * that the assembler made for the original (trampoline.S), with the copy's address.
 */
#ifndef KYMO_INSTRUMENT_TRAMPOLINE_FRAMES_H
#define KYMO_INSTRUMENT_TRAMPOLINE_FRAMES_H

#include <stdint.h>

/* While the pages can still be written. */
void trampoline_frames_write(uint8_t *trampoline);
/* .eh_frame_hdr of the copy, or NULL. */
const void *trampoline_frames_get_eh_frame_hdr(const uint8_t *trampoline);

#endif
