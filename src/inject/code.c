/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code.h. Calls are real calls and returns real returns, so a shadow stack would agree.
 */
#include "inject/code.h"

#define AT(member, offset)                                                                         \
	_Static_assert(offsetof(struct code_block, member) == (offset), "as in the code below")

AT(state, 0);
AT(errno_location, 8);
AT(open, 16);
AT(symbol, 24);
AT(error, 32);
AT(flags, 40);
AT(patience, 48);
AT(frame, 56);
AT(argument, 64);
AT(handle, 72);
AT(result, 80);
AT(error_text, 88);
AT(library, 96);
AT(function, 4192);

__asm__(".pushsection .rodata\n"
	".globl inject_code, inject_code_length\n"
	".hidden inject_code, inject_code_length\n"
	"inject_code:\n"
	"	cld\n"
	"	call *8(%rbx)\n" /* errno */
	"	movq %rax, %r12\n"
	"	movl (%rax), %r13d\n"
	"	leaq 96(%rbx), %rdi\n"
	"	movl 40(%rbx), %esi\n"
	"	call *16(%rbx)\n" /* dlopen(library, flags) */
	"	movq %rax, 72(%rbx)\n"
	"	testq %rax, %rax\n"
	"	jz 1f\n"
	"	movq %rax, %rdi\n"
	"	leaq 4192(%rbx), %rsi\n"
	"	call *24(%rbx)\n" /* dlsym(handle, function) */
	"	testq %rax, %rax\n"
	"	jz 1f\n"
	"	movq 64(%rbx), %rdi\n"
	"	call *%rax\n" /* function(argument) */
	"	movslq %eax, %rax\n"
	"	movq %rax, 80(%rbx)\n"
	"	jmp 2f\n"
	"1:	call *32(%rbx)\n" /* dlerror() */
	"	movq %rax, 88(%rbx)\n"
	"2:	movl %r13d, (%r12)\n"
	"	movq $1, (%rbx)\n" /* CODE_DONE */
	"	movq 48(%rbx), %r14\n"
	"3:	movl $24, %eax\n" /* sched_yield */
	"	syscall\n"
	"	decq %r14\n"
	"	jnz 3b\n"
	"	movq 56(%rbx), %rsp\n"
	"	movl $15, %eax\n" /* rt_sigreturn */
	"	syscall\n"
	"	ud2\n"
	"4:\n"
	".balign 8\n"
	"inject_code_length:\n"
	"	.quad 4b - inject_code\n"
	".popsection\n");

extern const uint64_t inject_code_length;

size_t inject_code_size(void)
{
	return (size_t)inject_code_length;
}
