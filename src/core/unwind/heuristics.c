/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Frames that no table describes: JIT code, hand-written assembly, modules whose table is not there
 * yet, signal trampolines of other C libraries. In this order:
 *
 *   1. bytes of a signal trampoline: mov $15,%eax|rax; syscall (signal(7), rt_sigreturn(2))
 *   2. the bottom of a makecontext stack: glibc puts the address of __start_context there, to whose
 *      first instruction functions return (sysdeps/unix/sysv/linux/x86_64/__start_context.S)
 *   3. in an interrupted frame, a return address on top of the stack (a leaf, or a function at its
 *      first instruction) or below one pushed rbp (at its second)
 *   4. a frame pointer
 *
 * A return address counts as one only where it points into code behind a call instruction. Code is
 * read by process_vm_readv, since a mapping may be gone since the view was made: 1 us, paid only by
 * such frames.
 */
#include <stddef.h>
#include <sys/uio.h>

#include "common/array.h"
#include "common/syscalls.h"
#include "core/unwind/walk.h"

/* Offsets in struct ucontext of the kernel (asm/ucontext.h, asm/sigcontext.h). */
#define UCONTEXT_RBP_OFFSET 120
#define UCONTEXT_RBX_OFFSET 128
#define UCONTEXT_RSP_OFFSET 160
#define UCONTEXT_RIP_OFFSET 168

#define GUESSED_FRAME_SIZE_MAX (1u << 20) /* a frame larger than this is no frame */

static bool read_code_bytes(uint64_t address, uint8_t *buffer, size_t size)
{
#ifdef KYMO_UNWIND_OUTSIDE
	return unwind_outside.read_code(address, buffer, size);
#else
	struct iovec local = {.iov_base = buffer, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};

	return sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1,
			 0) == (long)size;
#endif
}

/* True when the bytes end in a call: E8 rel32, or FF /2 in any of its lengths (Intel SDM, CALL). */
static bool code_ends_in_call(const uint8_t code[8])
{
	static const struct {
		uint8_t length, mode,
			base; /* instruction bytes, ModRM.mod, ModRM.rm; 8: any plain */
	} forms[] = {
		{2, 3, 8}, {2, 0, 8}, {3, 1, 8}, {3, 0, 4},
		{4, 1, 4}, {6, 0, 5}, {6, 2, 8}, {7, 2, 4},
	};

	if (code[3] == 0xe8)
		return true;
	for (unsigned i = 0; i < ARRAY_SIZE(forms); i++) {
		uint8_t operation = code[8 - forms[i].length];
		uint8_t modrm = code[9 - forms[i].length];
		bool plain = (modrm & 7) != 4 || forms[i].mode == 3;

		if (operation == 0xff && (modrm >> 3 & 7) == 2 && modrm >> 6 == forms[i].mode &&
		    (forms[i].base == 8 ? plain : (modrm & 7) == forms[i].base))
			return true;
	}
	return false;
}

static bool is_return_address(const struct unwind_walk *walk, uint64_t address)
{
	uint8_t code[8];

	return unwind_view_find_module(walk->modules_view, address - 1) &&
	       read_code_bytes(address - 8, code, 8) && code_ends_in_call(code);
}

#ifdef KYMO_UNWIND_OUTSIDE
bool unwind_outside_is_return_address(const struct unwind_all_modules_view *view, uint64_t address)
{
	struct unwind_walk walk = {.modules_view = view};

	return is_return_address(&walk, address);
}
#endif

enum unwind_step_result unwind_step_by_ucontext(struct unwind_walk *walk, uint64_t context)
{
	uint64_t ip, sp, bp, bx;

	if (!unwind_read_stack_word(walk, context + UCONTEXT_RIP_OFFSET, &ip) ||
	    !unwind_read_stack_word(walk, context + UCONTEXT_RSP_OFFSET, &sp) ||
	    !unwind_read_stack_word(walk, context + UCONTEXT_RBP_OFFSET, &bp) ||
	    !unwind_read_stack_word(walk, context + UCONTEXT_RBX_OFFSET, &bx))
		return UNWIND_STEP_END;
	walk->ip = ip;
	walk->sp = sp;
	walk->bp = bp;
	walk->bx = bx;
	walk->is_bx_known = true;
	walk->interrupted_gregs = NULL;
	walk->context = context;
	walk->frames_since_interrupted = 0;
	return UNWIND_STEP_INTERRUPTED;
}

/* After a handler returned to its trampoline, sp points at the ucontext. Its flags (at most 7 on
 * x86-64) and zero link are looked at first, because that needs no system call. */
static bool ip_is_at_signal_trampoline(struct unwind_walk *walk)
{
	static const uint8_t returns[] = {0x0f, 0, 0, 0, 0x0f, 0x05}; /* imm32 15; syscall */
	uint64_t flags, link;
	uint8_t code[9];
	unsigned start;

	if (!unwind_read_stack_word(walk, walk->sp, &flags) || flags > 7 ||
	    !unwind_read_stack_word(walk, walk->sp + 8, &link) || link != 0 ||
	    !read_code_bytes(walk->ip, code, sizeof(code)))
		return false;
	if (code[0] == 0xb8)
		start = 1;
	else if (code[0] == 0x48 && code[1] == 0xc7 && code[2] == 0xc0)
		start = 3;
	else
		return false;
	for (unsigned i = 0; i < sizeof(returns); i++)
		if (code[start + i] != returns[i])
			return false;
	return true;
}

/* A function that nobody calls, so that no code precedes its address, and that begins by dropping
 * the stack: [endbr64] mov %rbx,%rsp. */
static bool ip_is_in_start_context_function(const struct unwind_walk *walk)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t code[7];
	unsigned start = 0;

	if (walk->is_ip_exact ||
	    !unwind_module_find_rule(unwind_view_find_module(walk->modules_view, walk->ip),
				     walk->ip) ||
	    !read_code_bytes(walk->ip, code, sizeof(code)))
		return false;
	while (start < sizeof(endbr64) && code[start] == endbr64[start])
		start++;
	if (start != sizeof(endbr64))
		start = 0;
	return code[start] == 0x48 && code[start + 1] == 0x89 && code[start + 2] == 0xdc;
}

static enum unwind_step_result set_guessed_caller(struct unwind_walk *walk, uint64_t ip,
						  uint64_t sp, uint64_t bp)
{
	walk->ip = ip;
	walk->sp = sp;
	walk->bp = bp;
	walk->is_bx_known = false;
	walk->frames_since_interrupted++;
	return UNWIND_STEP_CALLER;
}

/* The caller by the frame pointer; false: rbp is none. Return addresses outside the known code are
 * accepted when the next frame pointer looks right too: JIT code appears before views do. */
static bool guess_caller_by_frame_pointer(struct unwind_walk *walk)
{
	uint64_t bp = walk->bp, next, ip;

	if (bp & 7 || bp < walk->sp || bp - walk->sp > GUESSED_FRAME_SIZE_MAX ||
	    !unwind_read_stack_word(walk, bp, &next) || !unwind_read_stack_word(walk, bp + 8, &ip))
		return false;
	if (!unwind_view_find_module(walk->modules_view, ip - 1) &&
	    (ip < 65536 || ip >> 47 != 0 || next & 7 || next <= bp ||
	     next - bp > GUESSED_FRAME_SIZE_MAX))
		return false;
	set_guessed_caller(walk, ip, bp + 16, next);
	return true;
}

enum unwind_step_result unwind_guess_caller(struct unwind_walk *walk)
{
	uint64_t word, above;

	if (ip_is_at_signal_trampoline(walk))
		return unwind_step_by_ucontext(walk, walk->sp);
	if (ip_is_in_start_context_function(walk)) {
		walk->is_ip_exact = true;
		walk->end = SPOOL_STACK_COMPLETE;
		return UNWIND_STEP_END;
	}
	if (walk->is_ip_exact && unwind_read_stack_word(walk, walk->sp, &word)) {
		if (is_return_address(walk, word))
			return set_guessed_caller(walk, word, walk->sp + 8, walk->bp);
		if (word == walk->bp && unwind_read_stack_word(walk, walk->sp + 8, &above) &&
		    is_return_address(walk, above))
			return set_guessed_caller(walk, above, walk->sp + 16, word);
	}
	if (guess_caller_by_frame_pointer(walk))
		return UNWIND_STEP_CALLER;
	/* The kernel and every _start clear rbp for the outermost frame (psABI, 3.4.1). */
	if (walk->is_ip_exact)
		walk->end = SPOOL_STACK_NO_TABLE;
	else if (!unwind_view_find_module(walk->modules_view, walk->ip - 1))
		walk->end = SPOOL_STACK_BAD_PC;
	else
		walk->end = walk->bp == 0 ? SPOOL_STACK_COMPLETE : SPOOL_STACK_NO_TABLE;
	return UNWIND_STEP_END;
}
