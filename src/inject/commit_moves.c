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

#define STACK_READ_CHUNK_BYTES       (64u << 10)
#define SCANNED_STACK_PART_BYTES_MAX (8u << 20) /* of memory that is no thread's stack alone */
#define STACK_PARTS_MAX              64
#define USER_CODE_SEGMENT_SELECTOR   0x33u
#define EFLAGS_KNOWN_MASK            0x3f7fd7u
#define SIGNAL_FRAME_FLAGS_MAX       7u

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

static void append_pc_move(struct commit_moves *moves, struct commit_thread *thread, uint64_t at,
			   uint64_t to)
{
	if (moves->count == moves->capacity) {
		size_t capacity = moves->capacity ? 2 * moves->capacity : 64;
		struct commit_pc_move *larger = realloc(moves->list, capacity * sizeof(*larger));

		if (!larger) {
			moves->failed = true;
			return;
		}
		moves->list = larger;
		moves->capacity = capacity;
	}
	moves->list[moves->count++] = (struct commit_pc_move){thread, at, to};
}

/* ---- stacks ---- */

struct stack_scan_state {
	struct commit_moves *moves;
	struct commit_sites *sites;
	struct process_maps *maps;
	struct commit_threads *threads;
	uint64_t low, high; /* of the windows */
	/* Stacks of this thread that were read, and that are to be: from where. */
	struct stack_part {
		uint64_t from, end;
	} parts[STACK_PARTS_MAX];
	uint32_t part_count;
};

/* mov $15, %eax (or %rax); syscall. What libraries have for it is never longer. */
static bool address_is_signal_restorer_code(const struct stack_scan_state *scan, uint64_t address)
{
	static const uint8_t with_rax[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t with_eax[] = {0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05};
	uint8_t code[16];

	if (!process_read_memory(scan->threads->memory, address, code, sizeof(code)))
		return false;
	return !memcmp(code, with_rax, sizeof(with_rax)) ||
	       !memcmp(code, with_eax, sizeof(with_eax)) ||
	       /* after endbr64, or another instruction of its length */
	       !memcmp(code + 4, with_rax, sizeof(with_rax)) ||
	       !memcmp(code + 4, with_eax, sizeof(with_eax));
}

static bool looks_like_signal_frame(const struct stack_scan_state *scan,
				    const struct signal_frame *frame)
{
	return frame->cs == USER_CODE_SEGMENT_SELECTOR &&
	       !(frame->eflags & ~(uint64_t)EFLAGS_KNOWN_MASK) && frame->eflags & 2 &&
	       frame->flags <= SIGNAL_FRAME_FLAGS_MAX && !frame->link &&
	       frame->vector_state % 16 == 0 &&
	       address_is_signal_restorer_code(scan, frame->restorer);
}

static void add_stack_part(struct stack_scan_state *scan, uint64_t sp)
{
	const struct process_mapping *mapping = process_maps_find_by_address(scan->maps, sp);
	struct process_maps now;

	for (uint32_t i = 0; i < scan->part_count; i++) {
		if (sp >= scan->parts[i].from && sp < scan->parts[i].end)
			return;
	}
	if (!mapping && !process_maps_read(scan->threads->pid, &now)) { /* made since */
		process_maps_free(scan->maps);
		*scan->maps = now;
		mapping = process_maps_find_by_address(scan->maps, sp);
	}
	if (!mapping || scan->part_count == STACK_PARTS_MAX)
		return;
	scan->parts[scan->part_count++] = (struct stack_part){sp & ~7ull, mapping->end};
	if (strcmp(mapping->path, "[stack]") && mapping->end - sp > SCANNED_STACK_PART_BYTES_MAX)
		scan->parts[scan->part_count - 1].end = (sp & ~7ull) + SCANNED_STACK_PART_BYTES_MAX;
}

/* What comes two words behind a saved pc. Return addresses are in the same range, and many. */
static bool may_be_saved_pc(const uint64_t *words, size_t at, size_t count)
{
	return at + 2 >= count || (uint16_t)words[at + 2] == USER_CODE_SEGMENT_SELECTOR;
}

/* A word that could be a saved pc: its frame begins a fixed distance below. */
static void append_pc_move_if_saved_pc(struct stack_scan_state *scan, uint64_t at, uint64_t word)
{
	struct signal_frame frame;
	uint64_t to;

	if (!process_read_memory(scan->threads->memory, at - offsetof(struct signal_frame, pc),
				 &frame, sizeof(frame)) ||
	    !looks_like_signal_frame(scan, &frame))
		return;
	if (commit_sites_find_moved_address(scan->sites, word, false, &to) && to)
		append_pc_move(scan->moves, NULL, at, to);
}

/* Any frame tells of the stack that it interrupted, wherever its pc is: found by its restorer. */
static void add_stack_interrupted_by_signal_frame(struct stack_scan_state *scan, uint64_t at)
{
	struct signal_frame frame;

	if (process_read_memory(scan->threads->memory, at - offsetof(struct signal_frame, cs),
				&frame, sizeof(frame)) &&
	    looks_like_signal_frame(scan, &frame))
		add_stack_part(scan, frame.sp);
}

static void scan_stack_part(struct stack_scan_state *scan, const struct stack_part *part)
{
	static uint64_t words[STACK_READ_CHUNK_BYTES / sizeof(uint64_t)];

	for (uint64_t at = part->from; at < part->end;) {
		size_t size = part->end - at < STACK_READ_CHUNK_BYTES ? part->end - at
								      : STACK_READ_CHUNK_BYTES;
		struct iovec here = {words, size}, there = {(void *)(uintptr_t)at, size};
		ssize_t got = process_vm_readv(scan->threads->pid, &here, 1, &there, 1, 0);

		if (got < 8)
			return;
		for (size_t i = 0, count = (size_t)got / 8; i < count; i++) {
			if (words[i] >= scan->low && words[i] < scan->high) {
				if (may_be_saved_pc(words, i, count))
					append_pc_move_if_saved_pc(scan, at + 8 * i, words[i]);
			}
			/* cs, and ss or nothing; gs and fs are 0 */
			else if ((words[i] & 0xffffffffffffull) == USER_CODE_SEGMENT_SELECTOR)
				add_stack_interrupted_by_signal_frame(scan, at + 8 * i);
		}
		at += (size_t)got & ~7ull;
	}
}

static void scan_all_stacks_of_thread(struct stack_scan_state *scan,
				      const struct commit_thread *thread)
{
	scan->part_count = 0;
	add_stack_part(scan, thread->tracee.registers.rsp);
	for (uint32_t i = 0; i < scan->part_count; i++)
		scan_stack_part(scan, &scan->parts[i]);
}

/* ---- all threads ---- */

int commit_moves_find_in_all_threads(struct commit_moves *moves, struct commit_threads *threads,
				     struct commit_sites *sites, struct process_maps *maps)
{
	struct stack_scan_state scan = {
		.moves = moves, .sites = sites, .maps = maps, .threads = threads};

	commit_sites_get_range(sites, &scan.low, &scan.high);
	for (size_t i = 0; i < threads->count; i++) {
		struct commit_thread *thread = threads->list[i];
		bool call = (int64_t)thread->tracee.registers.orig_rax >= 0;
		uint64_t to;

		if (!thread->stopped)
			continue;
		if (commit_sites_find_moved_address(sites, thread->tracee.registers.rip, call,
						    &to) &&
		    to)
			append_pc_move(moves, thread, 0, to);
		scan_all_stacks_of_thread(&scan, thread);
	}
	return moves->failed ? -ENOMEM : 0;
}

bool commit_moves_apply(struct commit_moves *moves, int memory)
{
	bool all = true;

	for (size_t i = 0; i < moves->count; i++) {
		const struct commit_pc_move *move = &moves->list[i];

		if (move->thread)
			all = commit_thread_set_pc(move->thread, move->to) && all;
		else
			all = process_write_memory(memory, move->at, &move->to, sizeof(move->to)) &&
			      all;
	}
	return all;
}
