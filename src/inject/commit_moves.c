/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads moved out of windows: where they stand, and where they go back to when a signal handler
 * returns.
 *
 * Frames of handlers are found by their looks (arch/x86/include/uapi/asm/sigcontext.h, struct
 * rt_sigframe): the address of code that calls rt_sigreturn, then a ucontext whose pc lies in a
 * window. Each stack is read from the stack pointer to the end of what is mapped there; a handler
 * on an alternate stack leads to the stack that it interrupted.
 */
#include "inject/commit_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define CHUNK           (64u << 10)
#define SHARED_MAX      (8u << 20) /* of memory that is no thread's stack alone */
#define STACKS_MAX      64
#define USER_CODE       0x33u
#define FLAGS_KNOWN     0x3f7fd7u
#define FRAME_FLAGS_MAX 7u

/* What the kernel puts on the stack, from the return address of the handler on. */
struct signal_frame {
	uint64_t restorer;
	uint64_t flags, link;
	uint64_t stack_address;
	uint32_t stack_flags, padding;
	uint64_t stack_size;
	uint64_t registers[15], sp, pc, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t error, trap, old_mask, cr2, vector_state;
};

static void add_move(struct commit_moves *moves, struct commit_thread *thread, uint64_t at,
		     uint64_t to)
{
	if (moves->count == moves->capacity) {
		size_t capacity = moves->capacity ? 2 * moves->capacity : 64;
		struct commit_move *larger = realloc(moves->list, capacity * sizeof(*larger));

		if (!larger) {
			moves->failed = true;
			return;
		}
		moves->list = larger;
		moves->capacity = capacity;
	}
	moves->list[moves->count++] = (struct commit_move){thread, at, to};
}

/* ---- stacks ---- */

struct scan {
	struct commit_moves *moves;
	struct commit_sites *sites;
	struct process_maps *maps;
	struct commit_threads *threads;
	uint64_t low, high; /* of the windows */
	/* Stacks of this thread that were read, and that are to be: from where. */
	struct stack_part {
		uint64_t from, end;
	} parts[STACKS_MAX];
	uint32_t part_count;
};

/* mov $15, %eax (or %rax); syscall. What libraries have for it is never longer. */
static bool is_restorer(const struct scan *scan, uint64_t address)
{
	static const uint8_t with_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t with_eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[16];

	if (!process_read(scan->threads->memory, address, code, sizeof(code)))
		return false;
	return !memcmp(code, with_rax, sizeof(with_rax)) ||
	       !memcmp(code, with_eax, sizeof(with_eax)) ||
	       /* after endbr64, or another instruction of its length */
	       !memcmp(code + 4, with_rax, sizeof(with_rax)) ||
	       !memcmp(code + 4, with_eax, sizeof(with_eax));
}

static bool looks_right(const struct scan *scan, const struct signal_frame *frame)
{
	return frame->cs == USER_CODE && !(frame->eflags & ~(uint64_t)FLAGS_KNOWN) &&
	       frame->eflags & 2 && frame->flags <= FRAME_FLAGS_MAX && !frame->link &&
	       frame->vector_state % 16 == 0 && is_restorer(scan, frame->restorer);
}

static void read_next(struct scan *scan, uint64_t sp)
{
	const struct process_mapping *mapping = process_maps_find(scan->maps, sp);
	struct process_maps now;

	for (uint32_t i = 0; i < scan->part_count; i++) {
		if (sp >= scan->parts[i].from && sp < scan->parts[i].end)
			return;
	}
	if (!mapping && !process_maps_read(scan->threads->pid, &now)) { /* made since */
		process_maps_free(scan->maps);
		*scan->maps = now;
		mapping = process_maps_find(scan->maps, sp);
	}
	if (!mapping || scan->part_count == STACKS_MAX)
		return;
	scan->parts[scan->part_count++] = (struct stack_part){sp & ~7ull, mapping->end};
	if (strcmp(mapping->path, "[stack]") && mapping->end - sp > SHARED_MAX)
		scan->parts[scan->part_count - 1].end = (sp & ~7ull) + SHARED_MAX;
}

/* What comes two words behind a saved pc. Return addresses are in the same range, and many. */
static bool may_be_saved(const uint64_t *words, size_t at, size_t count)
{
	return at + 2 >= count || (uint16_t)words[at + 2] == USER_CODE;
}

/* A word that could be a saved pc: its frame begins a fixed distance below. */
static void look_at(struct scan *scan, uint64_t at, uint64_t word)
{
	struct signal_frame frame;
	uint64_t to;

	if (!process_read(scan->threads->memory, at - offsetof(struct signal_frame, pc), &frame,
			  sizeof(frame)) ||
	    !looks_right(scan, &frame))
		return;
	if (commit_sites_moved(scan->sites, word, false, &to) && to)
		add_move(scan->moves, NULL, at, to);
}

/* Any frame tells of the stack that it interrupted, wherever its pc is: found by its restorer. */
static void look_for_other_stack(struct scan *scan, uint64_t at)
{
	struct signal_frame frame;

	if (process_read(scan->threads->memory, at - offsetof(struct signal_frame, cs), &frame,
			 sizeof(frame)) &&
	    looks_right(scan, &frame))
		read_next(scan, frame.sp);
}

static void scan_part(struct scan *scan, const struct stack_part *part)
{
	static uint64_t words[CHUNK / sizeof(uint64_t)];

	for (uint64_t at = part->from; at < part->end;) {
		size_t size = part->end - at < CHUNK ? part->end - at : CHUNK;
		struct iovec here = {words, size}, there = {(void *)(uintptr_t)at, size};
		ssize_t got = process_vm_readv(scan->threads->pid, &here, 1, &there, 1, 0);

		if (got < 8)
			return;
		for (size_t i = 0, count = (size_t)got / 8; i < count; i++) {
			if (words[i] >= scan->low && words[i] < scan->high) {
				if (may_be_saved(words, i, count))
					look_at(scan, at + 8 * i, words[i]);
			}
			/* cs, and ss or nothing; gs and fs are 0 */
			else if ((words[i] & 0xffffffffffffull) == USER_CODE)
				look_for_other_stack(scan, at + 8 * i);
		}
		at += (size_t)got & ~7ull;
	}
}

static void scan_stacks(struct scan *scan, const struct commit_thread *thread)
{
	scan->part_count = 0;
	read_next(scan, thread->tracee.registers.rsp);
	for (uint32_t i = 0; i < scan->part_count; i++)
		scan_part(scan, &scan->parts[i]);
}

/* ---- all threads ---- */

int commit_moves_find(struct commit_moves *moves, struct commit_threads *threads,
		      struct commit_sites *sites, struct process_maps *maps)
{
	struct scan scan = {.moves = moves, .sites = sites, .maps = maps, .threads = threads};

	commit_sites_range(sites, &scan.low, &scan.high);
	for (size_t i = 0; i < threads->count; i++) {
		struct commit_thread *thread = threads->list[i];
		bool call = (int64_t)thread->tracee.registers.orig_rax >= 0;
		uint64_t to;

		if (!thread->stopped)
			continue;
		if (commit_sites_moved(sites, thread->tracee.registers.rip, call, &to) && to)
			add_move(moves, thread, 0, to);
		scan_stacks(&scan, thread);
	}
	return moves->failed ? -ENOMEM : 0;
}

bool commit_moves_apply(struct commit_moves *moves, int memory)
{
	bool all = true;

	for (size_t i = 0; i < moves->count; i++) {
		const struct commit_move *move = &moves->list[i];

		if (move->thread)
			all = commit_thread_set_pc(move->thread, move->to) && all;
		else
			all = process_write(memory, move->at, &move->to, sizeof(move->to)) && all;
	}
	return all;
}
