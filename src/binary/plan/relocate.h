/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Moving instructions to another address, so that they do the same there.
 *
 * RIP-relative operands and branches are retargeted; short branches become long ones; jrcxz and
 * loop jump over a jump; a direct call becomes a push of the original return address and a jump, so
 * that unwinders and landing pads see what they would have seen. Registers, flags and the stack are
 * as with the original at every point.
 */
#ifndef KYMO_BINARY_PLAN_RELOCATE_H
#define KYMO_BINARY_PLAN_RELOCATE_H

#include "binary/instruction.h"

#define RELOCATED_INSTRUCTION_BYTES_MAX 40u /* bytes that one instruction can become */

/* Writes to `out` (RELOCATED_INSTRUCTION_BYTES_MAX bytes) what does the same at `to` as the
 * instruction at `from`. Length, or a negative errno: -ENOTSUP works only where it stands, -ERANGE
 * out of reach. [window_low, window_high) are the addresses that move with it: branches into them,
 * other than to the first, where the patch will be, are -ENOTSUP. */
int relocate_instruction(const uint8_t *bytes, const struct instruction *instruction, uint64_t from,
			 uint64_t to, uint64_t window_low, uint64_t window_high, uint8_t *out);

#endif
