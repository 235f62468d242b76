/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The frame with which a thread puts itself back by rt_sigreturn(2), as the kernel would have made
 * it for a signal handler (arch/x86/kernel/signal_64.c, asm/sigcontext.h).
 */
#ifndef KYMO_INJECT_RETURN_FRAME_H
#define KYMO_INJECT_RETURN_FRAME_H

#include <stdint.h>

#include "inject/tracee.h"

#define SIGRETURN_FRAME_SIZE (20u << 10)

/* Writes the frame for the saved thread, to be placed at `address` (64 bytes aligned). Returns what
 * the stack pointer must be when rt_sigreturn is called. */
uint64_t sigreturn_frame_write(uint8_t frame[SIGRETURN_FRAME_SIZE], uint64_t address,
			       const struct tracee *tracee);

#endif
