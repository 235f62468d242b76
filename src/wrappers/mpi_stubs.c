/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Replacements of all MPI functions: 16 bytes each that load a number and jump to common code. That
 * stores the six registers of integer arguments side by side (System V ABI, AMD64 supplement 3.2.3)
 * and calls mpi_enter(). MPI functions take integers and pointers only, and return an int or
 * nothing.
 */
#include "wrappers/mpi_private.h"

#define STUB_SIZE  16
#define STUB_COUNT 4032 /* MPI_SPELLINGS * MPI_CALLS_MAX */
_Static_assert(STUB_COUNT == MPI_SPELLINGS * MPI_CALLS_MAX, "a stub for each spelling");

#define TEXT_OF(value)  #value
#define TEXT_FOR(value) TEXT_OF(value)

/* clang-format off */
__asm__(".pushsection .text\n"
	".p2align 4\n"
	".local kymo_mpi_stubs\n"
	"kymo_mpi_stubs:\n"
	".cfi_startproc\n"
	".set kymo_mpi_number, 0\n"
	".rept " TEXT_FOR(STUB_COUNT) "\n"
	"	.p2align 4\n"
	"	endbr64\n"
	"	movl $kymo_mpi_number, %eax\n"
	"	jmp kymo_mpi_common\n"
	"	.set kymo_mpi_number, kymo_mpi_number + 1\n"
	".endr\n"
	".cfi_endproc\n"
	".p2align 4\n"
	".local kymo_mpi_common\n"
	".type kymo_mpi_common, @function\n"
	"kymo_mpi_common:\n"
	".cfi_startproc\n"
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	pushq %r9\n"
	"	pushq %r8\n"
	"	pushq %rcx\n"
	"	pushq %rdx\n"
	"	pushq %rsi\n"
	"	pushq %rdi\n"
	"	movl %eax, %edi\n"
	"	movq %rsp, %rsi\n"
	"	leaq 16(%rbp), %rdx\n"
	"	call mpi_enter\n"
	"	leave\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size kymo_mpi_common, . - kymo_mpi_common\n"
	".popsection\n");
/* clang-format on */

extern const char kymo_mpi_stubs[];

void *mpi_stub(uint32_t index)
{
	return (void *)(uintptr_t)(kymo_mpi_stubs + (size_t)index * STUB_SIZE);
}
