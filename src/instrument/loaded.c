/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See loaded.h. The loader calls an empty function, whose address it tells debuggers (r_brk of
 * struct r_debug, <link.h>), before it changes its list of objects and after: then new ones are
 * mapped, but neither relocated nor have their constructors run. That function is a `ret` and what
 * the compiler put behind it up to the next one; a jump to code of ours takes its place, written by
 * one store, for another thread may be there.
 *
 * glibc calls it as any other function, so what a function may change is free there; general
 * registers are kept nevertheless.
 */
#include "instrument/loaded.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "common/syscalls.h"

#define PAGE_BYTES         4096u
#define CACHE_LINE_BYTES   64u
#define FUNCTION_ALIGNMENT 16u
#define JUMP_LENGTH        5u
#define RET_OPCODE         0xc3u
#define JUMP_OPCODE        0xe9u

static struct {
	const struct r_debug *linker_debug;
	void (*mapped)(void), (*removing)(void);
	bool is_watching;
} loaded;

__attribute__((used)) static void call_listener_on_loader_change(void)
{
	if (loaded.linker_debug->r_state == RT_CONSISTENT)
		loaded.mapped();
	else if (loaded.linker_debug->r_state == RT_DELETE)
		loaded.removing();
}

/* Where the loader's function leads to. The stack is at a function's entry. */
__attribute__((naked, used)) static void call_listener_saving_all_registers(void)
{
	__asm__("pushq %rax\n"
		"pushq %rcx\n"
		"pushq %rdx\n"
		"pushq %rsi\n"
		"pushq %rdi\n"
		"pushq %r8\n"
		"pushq %r9\n"
		"pushq %r10\n"
		"pushq %r11\n"
		".cfi_adjust_cfa_offset 72\n"
		"call call_listener_on_loader_change\n"
		"popq %r11\n"
		"popq %r10\n"
		"popq %r9\n"
		"popq %r8\n"
		"popq %rdi\n"
		"popq %rsi\n"
		"popq %rdx\n"
		"popq %rcx\n"
		"popq %rax\n"
		".cfi_adjust_cfa_offset -72\n"
		"ret\n");
}

/* The executable is first in the loader's list; its dynamic section holds a pointer for debuggers.
 */
static int find_debugger_rendezvous(struct dl_phdr_info *info, size_t size, void *context)
{
	const struct r_debug **ret = context;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Dyn) *entry =
			(const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (; entry->d_tag != DT_NULL; entry++) {
			if (entry->d_tag == DT_DEBUG)
				*ret = (const void *)entry->d_un.d_ptr;
		}
	}
	return 1;
}

/* Does a no-operation begin here, as assemblers make them to fill up, or other filling? */
static bool is_filler_code(const uint8_t *at)
{
	while (*at == 0x66 || *at == 0x2e)
		at++;
	return *at == 0x90 || *at == 0xcc || *at == 0x00 || (at[0] == 0x0f && at[1] == 0x1f);
}

/* The `ret` that makes room for a jump; NULL: it is not as expected. */
static uint8_t *find_loader_ret_instruction(uint64_t address)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t *at = (uint8_t *)(uintptr_t)address;
	uint64_t distance;

	if (address % FUNCTION_ALIGNMENT)
		return NULL;
	for (unsigned i = 0; i < sizeof(endbr64) && at[i] == endbr64[i]; i++) {
		if (i + 1 == sizeof(endbr64))
			at += sizeof(endbr64);
	}
	distance = (uint64_t)(uintptr_t)call_listener_saving_all_registers -
		   ((uint64_t)(uintptr_t)at + JUMP_LENGTH);
	if (at[0] != RET_OPCODE || !is_filler_code(at + 1) ||
	    (int64_t)distance != (int32_t)distance)
		return NULL;
	/* one store changes it for all only where it is in one line */
	return ((uint64_t)(uintptr_t)at & (CACHE_LINE_BYTES - 1)) <=
			       CACHE_LINE_BYTES - sizeof(uint64_t)
		       ? at
		       : NULL;
}

static int write_loader_jump(uint8_t *at)
{
	int32_t distance = (int32_t)((uint64_t)(uintptr_t)call_listener_saving_all_registers -
				     ((uint64_t)(uintptr_t)at + JUMP_LENGTH));
	uint64_t mask = (1ull << (8 * JUMP_LENGTH)) - 1, word = *(volatile uint64_t *)at;
	uint8_t *page = (uint8_t *)((uintptr_t)at & ~(uintptr_t)(PAGE_BYTES - 1));
	long error =
		sys_call3(SYS_mprotect, (long)page, PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC);

	if (error)
		return (int)error;
	word = (word & ~mask) | JUMP_OPCODE | (uint64_t)(uint32_t)distance << 8;
	*(volatile uint64_t *)at = word;
	sys_call3(SYS_mprotect, (long)page, PAGE_BYTES, PROT_READ | PROT_EXEC);
	return 0;
}

int loaded_watch_loader(void (*mapped)(void), void (*removing)(void))
{
	const struct r_debug *debug = NULL;
	uint8_t *at;
	int error;

	loaded.mapped = mapped;
	loaded.removing = removing;
	if (loaded.is_watching)
		return 0;
	dl_iterate_phdr(find_debugger_rendezvous, &debug);
	at = debug && debug->r_version >= 1 && debug->r_brk
		     ? find_loader_ret_instruction(debug->r_brk)
		     : NULL;
	if (!at)
		return -ENOEXEC;
	loaded.linker_debug = debug;
	error = write_loader_jump(at);
	loaded.is_watching = !error;
	return error;
}
