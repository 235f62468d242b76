/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Replacements of all MPI functions: 16 bytes each that load a number and jump to common code. That
 * stores the six registers of integer arguments side by side (System V ABI, AMD64 supplement 3.2.3)
 * and calls mpi_handle_call(). MPI functions take integers and pointers only, and return an int or
 * nothing.
 */
#include "wrappers/mpi/stubs.h"

	.text
	.globl kymo_mpi_stubs
	.hidden kymo_mpi_stubs
	.hidden mpi_handle_call
	.p2align 4
kymo_mpi_stubs:
	.cfi_startproc
	.set number, 0
	.rept MPI_STUB_COUNT
	.p2align 4
	endbr64
	movl $number, %eax
	jmp kymo_mpi_common
	.set number, number + 1
	.endr
	.cfi_endproc

	/* Fails when the stubs are larger than C takes them for. */
	.org kymo_mpi_stubs + MPI_STUB_COUNT * MPI_STUB_SIZE
	.type kymo_mpi_common, @function
kymo_mpi_common:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq %r9
	pushq %r8
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	movl %eax, %edi
	movq %rsp, %rsi
	leaq 16(%rbp), %rdx
	call mpi_handle_call
	leave
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size kymo_mpi_common, . - kymo_mpi_common

	.section .note.GNU-stack, "", @progbits
