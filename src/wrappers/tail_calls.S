/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Replacements that must not be on the stack when the original runs: vfork returns twice through
 * whatever frame called it; dlopen and dlsym look at their return address to find out who calls;
 * the exec family may be variadic; a core dump of abort should look as it does without us.
 *
 * wrapped_NAME calls tail_NAME, a C function of the first four arguments and the return address,
 * and jumps to what it returns with all registers that carry arguments as they were (psABI, 3.2.3;
 * rax counts the vector registers of variadic calls, which none of these functions uses).
 */
	.section .text.hot.fork, "ax", @progbits

.macro tail_call name
	.globl wrapped_\name
	.hidden wrapped_\name
	.hidden tail_\name
	.type wrapped_\name, @function
	.p2align 4
wrapped_\name:
	.cfi_startproc
	.irp register, rdi, rsi, rdx, rcx, r8, r9, rax
	pushq %\register
	.cfi_adjust_cfa_offset 8
	.endr
	movq 56(%rsp), %r8
	call tail_\name
	movq %rax, %r11
	.irp register, rax, r9, r8, rcx, rdx, rsi, rdi
	popq %\register
	.cfi_adjust_cfa_offset -8
	.endr
	jmp *%r11
	.cfi_endproc
	.size wrapped_\name, . - wrapped_\name
.endm

	tail_call dlopen
	tail_call dlsym
	tail_call vfork
	tail_call execve
	tail_call execv
	tail_call execvp
	tail_call execvpe
	tail_call execl
	tail_call execlp
	tail_call execle
	tail_call fexecve
	tail_call execveat
	tail_call exit
	tail_call _exit
	tail_call _Exit
	tail_call quick_exit
	tail_call abort

	.section .note.GNU-stack, "", @progbits
