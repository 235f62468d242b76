/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code.h. Calls are real calls and returns real returns, so a shadow stack would agree.
 */
#include "inject/code.h"

#define ASSERT_CODE_DATA_OFFSET(member, offset)                                                    \
	_Static_assert(offsetof(struct injected_code_data, member) == (offset),                    \
		       "as in the code below")

ASSERT_CODE_DATA_OFFSET(state, 0);
ASSERT_CODE_DATA_OFFSET(errno_location_function, 8);
ASSERT_CODE_DATA_OFFSET(open, 16);
ASSERT_CODE_DATA_OFFSET(symbol, 24);
ASSERT_CODE_DATA_OFFSET(error, 32);
ASSERT_CODE_DATA_OFFSET(flags, 40);
ASSERT_CODE_DATA_OFFSET(patience, 48);
ASSERT_CODE_DATA_OFFSET(frame, 56);
ASSERT_CODE_DATA_OFFSET(argument, 64);
ASSERT_CODE_DATA_OFFSET(handle, 72);
ASSERT_CODE_DATA_OFFSET(result, 80);
ASSERT_CODE_DATA_OFFSET(error_text_address, 88);
ASSERT_CODE_DATA_OFFSET(errno_to_message_offset, 96);
ASSERT_CODE_DATA_OFFSET(message, 104);
ASSERT_CODE_DATA_OFFSET(library, 112);
ASSERT_CODE_DATA_OFFSET(function, 4208);

__asm__(".pushsection .rodata\n"
	".globl inject_code, inject_code_length\n"
	".hidden inject_code, inject_code_length\n"
	"inject_code:\n"
	"	cld\n"
	"	call *8(%rbx)\n" /* errno */
	"	movq %rax, %r12\n"
	"	movl (%rax), %r13d\n"
	"	movq %rax, %r15\n"
	"	addq 96(%rbx), %r15\n" /* where the loader keeps what dlerror() will say */
	"	cmpq %r15, %r12\n"
	"	je 5f\n"
	"	movq (%r15), %rax\n"
	"	movq %rax, 104(%rbx)\n"
	"	movq $0, (%r15)\n"
	"5:	leaq 112(%rbx), %rdi\n"
	"	movl 40(%rbx), %esi\n"
	"	call *16(%rbx)\n" /* dlopen(library, flags) */
	"	movq %rax, 72(%rbx)\n"
	"	testq %rax, %rax\n"
	"	jz 1f\n"
	"	movq %rax, %rdi\n"
	"	leaq 4208(%rbx), %rsi\n"
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
	"	movq 104(%rbx), %rax\n"
	"	testq %rax, %rax\n"
	"	jz 6f\n"
	"	movq %rax, (%r15)\n"
	"6:	movq $1, (%rbx)\n" /* INJECTED_CODE_DONE */
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

size_t inject_get_code_size(void)
{
	return (size_t)inject_code_length;
}
