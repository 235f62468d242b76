/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call frame instructions that compilers seldom write, one a row, for unwind_rows.py. Never run.
 */
	.text
	.globl odd_frames
	.type odd_frames, @function
odd_frames:
	.cfi_startproc
	nop
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	.skip 63, 0x90                          /* advance_loc */
	.cfi_def_cfa_offset 24
	.cfi_offset %rbx, -24
	.skip 200, 0x90                         /* advance_loc1 */
	.cfi_remember_state
	.cfi_def_cfa %rbp, 32
	.skip 700, 0x90                         /* advance_loc2 */
	.cfi_remember_state
	.cfi_same_value %rbp
	nop
	.cfi_undefined %rbx
	.skip 70000, 0x90                       /* advance_loc4 */
	.cfi_restore_state
	nop
	.cfi_restore %rbx
	nop
	.cfi_restore_state
	nop
	.cfi_val_offset %rbp, -32
	nop
	.cfi_register %rbx, %r12
	nop
	.cfi_register %rbp, %rdx
	nop
	.cfi_escape 0x12, 7, 0x7e               /* def_cfa_sf rsp, -2 * -8 */
	nop
	.cfi_escape 0x13, 0x7d                  /* def_cfa_offset_sf -3 * -8 */
	nop
	.cfi_escape 0x11, 6, 0x7c               /* offset_extended_sf rbp, -4 * -8 */
	nop
	.cfi_escape 0x05, 3, 5                  /* offset_extended rbx, 5 * -8 */
	nop
	.cfi_escape 0x06, 3                     /* restore_extended rbx */
	nop
	.cfi_escape 0x2e, 32                    /* GNU_args_size: no new rule */
	nop
	.cfi_escape 0x15, 6, 2                  /* val_offset_sf rbp, 2 * -8 */
	nop
	.cfi_escape 0x10, 6, 3, 0x77, 0x88, 1   /* expression rbp: breg7 136 */
	nop
	.cfi_escape 0x16, 3, 2, 0x77, 0         /* val_expression rbx: breg7 0 */
	nop
	.cfi_escape 0x0f, 5, 0x76, 0x78, 0x06, 0x23, 8 /* def_cfa_expression */
	nop
	.cfi_def_cfa %r10, 0
	nop
	.cfi_undefined %rip
	nop
	.cfi_offset %rip, -16
	nop
	.cfi_register %rip, %rdi
	nop
	ret
	.cfi_endproc
	.size odd_frames, . - odd_frames

	/* Code without any, a second function, an empty one. */
	.p2align 8
	.skip 100, 0x90
first:	.cfi_startproc
	nop
	.cfi_def_cfa_offset 40
	ret
	.cfi_endproc
empty:	.cfi_startproc
	.cfi_endproc
	.skip 100, 0x90

	.section .note.GNU-stack, "", @progbits
