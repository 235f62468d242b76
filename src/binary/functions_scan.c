/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Looking through all code once: every branch, call and address of code in an instruction marks its
 * target; of each function it is noted what it does that matters for hooking it. Then it is decided
 * which functions are left alone.
 *
 * Bytes that are no instruction are stepped over one at a time, so that nothing behind them is
 * missed. Code outside all functions is looked through as well, for its targets alone.
 *
 * Functions are looked through by several threads. What one finds of another function is a mark, or
 * of a kind that comes out the same in any order; a plan does not depend on the number of threads.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "binary/blocks.h"
#include "binary/functions_internal.h"

#define TABLES_MAX 64  /* addresses of data that one function holds, at most remembered */
#define LEAVES_MAX 256 /* places outside that one function jumps to, at most remembered */
#define TABLE_MAX  65536u
#define SCANS_MAX  64
#define ENDBR_SIZE 4

#define THREADS_MAX 8
#define SHARE       64u /* functions that a thread takes at a time */
#define SHARES_MIN  8u  /* a thread more is worth its start for so many */

static const uint8_t endbr64[ENDBR_SIZE] = {0xf3, 0x0f, 0x1e, 0xfa};

/* One function, while it is looked through. */
struct scan {
	struct finder *finder;
	struct function *function; /* NULL: code between functions */
	struct finder_function *extra;
	const uint8_t *bytes; /* its code */
	struct stack_watch watch;
	uint64_t entry; /* behind endbr64 */
	uint64_t tables[TABLES_MAX];
	unsigned table_count;
	uint64_t leaves[LEAVES_MAX];
	unsigned leave_count;
	bool returns, undecodable, enters_itself, twice;
};

/* A table of distances from its own start, as compilers make them for switch in position-
 * independent code. Where a jump is not understood, anything that a lea of the same function points
 * to is tried: other data does not lead into code. It may go on too far, into a table of another
 * base, which marks more than there is. */
static void mark_table(struct finder *finder, uint64_t table)
{
	size_t left;
	const uint8_t *bytes = functions_data(finder->functions, table, &left);

	if (!bytes || table & 3)
		return;
	for (uint32_t i = 0; i < TABLE_MAX && left >= 4 * (i + 1); i++) {
		int32_t distance;
		uint64_t target;
		memcpy(&distance, bytes + 4 * i, sizeof(distance));
		target = table + (uint64_t)(int64_t)distance;
		if (!finder_in_code(finder, target) || finder_in_code(finder, table))
			return;
		finder_mark(finder, MARK_TARGET, target);
	}
}

static void mark_operand(struct scan *scan, const struct instruction *instruction)
{
	struct finder *finder = scan->finder;
	bool is_lea = !instruction->map && instruction->opcode == 0x8d && !instruction->vex;

	if (finder_in_code(finder, instruction->target)) {
		finder_mark(finder, MARK_TARGET, instruction->target);
		if (is_lea && scan->function)
			finder_mark(finder, MARK_ENTRY, instruction->target);
	} else if (is_lea && scan->table_count < TABLES_MAX) {
		scan->tables[scan->table_count++] = instruction->target;
	}
}

/* In programs at fixed addresses code is named by constants. */
static void mark_constant(struct scan *scan, const uint8_t *bytes,
			  const struct instruction *instruction)
{
	uint64_t value = 0;

	if (instruction->immediate_size < 4)
		return;
	memcpy(&value, bytes + instruction->immediate_at,
	       instruction->immediate_size > 8 ? 8 : instruction->immediate_size);
	finder_mark(scan->finder, MARK_TARGET, value);
	if (scan->function)
		finder_mark(scan->finder, MARK_ENTRY, value);
}

static bool is_inside(const struct scan *scan, uint64_t target)
{
	return scan->function && target - scan->function->vaddr < scan->function->size;
}

static void note_jump(struct scan *scan, const struct instruction *instruction)
{
	struct finder *finder = scan->finder;
	uint64_t target = instruction->target;

	finder_mark(finder, MARK_TARGET, target);
	if (!scan->function)
		return;
	if (is_inside(scan, target)) {
		if (target == scan->function->vaddr || target == scan->entry)
			scan->enters_itself = true;
		return;
	}
	if (instruction->flow == INSTRUCTION_JUMP)
		scan->function->flags |= PLAN_FUNCTION_TAIL;
	scan->twice |= finder_is(finder, MARK_TWICE, target);
	if (scan->leave_count < LEAVES_MAX)
		scan->leaves[scan->leave_count++] = target;
}

static bool is_twice_slot(const struct finder *finder, uint64_t vaddr)
{
	size_t low = 0, high = finder->twice_slot_count;

	while (low < high) {
		size_t middle = (low + high) / 2;
		if (finder->twice_slots[middle] < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < finder->twice_slot_count && finder->twice_slots[low] == vaddr;
}

static void note_flow(struct scan *scan, const struct instruction *instruction)
{
	struct finder *finder = scan->finder;

	switch (instruction->flow) {
	case INSTRUCTION_JUMP:
	case INSTRUCTION_BRANCH:
		note_jump(scan, instruction);
		break;
	case INSTRUCTION_CALL:
		finder_mark(finder, MARK_TARGET, instruction->target);
		/* What looks like calls in data between functions proves nothing. */
		if (scan->function)
			finder_mark(finder, MARK_ENTRY, instruction->target);
		break;
	case INSTRUCTION_JUMP_INDIRECT:
		if (instruction->rip_relative && is_twice_slot(finder, instruction->target))
			scan->twice = true;
		if (instruction->rip_relative && scan->function)
			scan->function->flags |= PLAN_FUNCTION_TAIL;
		break;
	case INSTRUCTION_CALL_INDIRECT:
		if (scan->function && !instruction->rip_relative)
			scan->function->flags |= PLAN_FUNCTION_INDIRECT;
		break;
	case INSTRUCTION_RETURN:
		scan->returns = true;
		break;
	default:
		break;
	}
}

static void scan_instruction(struct scan *scan, const uint8_t *bytes, uint64_t vaddr,
			     const struct instruction *instruction)
{
	if (scan->function) {
		scan->function->instructions++;
		if (stack_watch_concerns(instruction))
			stack_watch_step(&scan->watch, bytes, instruction, vaddr);
	}
	if (instruction->rip_relative)
		mark_operand(scan, instruction);
	if (instruction->flow != INSTRUCTION_NEXT)
		note_flow(scan, instruction);
	else if (scan->finder->absolute && instruction->immediate_size >= 4)
		mark_constant(scan, bytes, instruction);
}

/* For blocks_find. */
static void scan_each(void *context, uint64_t vaddr, const struct instruction *instruction)
{
	struct scan *scan = context;

	scan_instruction(scan, scan->bytes + (vaddr - scan->function->vaddr), vaddr, instruction);
}

static void scan_bytes(struct scan *scan, const uint8_t *bytes, uint64_t vaddr, uint64_t size)
{
	struct instruction instruction;

	for (uint64_t at = 0; at < size; at += instruction.length) {
		if (instruction_decode(bytes + at, size - at, vaddr + at, &instruction)) {
			scan_instruction(scan, bytes + at, vaddr + at, &instruction);
		} else {
			scan->undecodable = true;
			instruction.length = 1;
		}
	}
}

/* The functions that it jumps to: who does, and whether memory below rsp may be alive then. */
static void note_source(struct finder_function *extra, uint32_t self, bool red_zone)
{
	uint32_t before = __atomic_load_n(&extra->source, __ATOMIC_RELAXED);

	while (before != self && before != SOURCE_MANY &&
	       !__atomic_compare_exchange_n(&extra->source, &before, before ? SOURCE_MANY : self,
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (red_zone)
		__atomic_store_n(&extra->live_stack, true, __ATOMIC_RELAXED);
}

static void note_leaves(struct scan *scan)
{
	struct finder *finder = scan->finder;
	uint32_t self = (uint32_t)(scan->function - finder->functions->list) + 1;

	for (unsigned i = 0; i < scan->leave_count; i++) {
		const struct function *other = functions_at(finder->functions, scan->leaves[i]);

		if (!other || other->reason == PLAN_LINKER_CODE)
			continue;
		if (other->vaddr != scan->leaves[i])
			scan->extra->jumps_aside = true;
		else
			note_source(&finder->extra[other - finder->functions->list], self,
				    scan->watch.red_zone);
	}
}

static void finish(struct scan *scan)
{
	struct function *function = scan->function;
	const struct stack_watch *watch = &scan->watch;

	scan->extra->enters_itself = scan->enters_itself;
	if (scan->undecodable)
		function->instructions = 0;
	if (!scan->returns && !(function->flags & PLAN_FUNCTION_TAIL))
		function->flags |= PLAN_FUNCTION_RETURNS_NOT;
	if (watch->reads_return || watch->switches)
		scan->extra->reads_return = true;
	scan->extra->leads_twice = scan->twice;
	note_leaves(scan);
}

static void note_blocks(struct scan *scan, const struct blocks *blocks)
{
	struct function *function = scan->function;
	struct finder *finder = scan->finder;

	for (uint32_t i = 0; i < blocks->table_target_count; i++) {
		finder_mark(finder, MARK_TARGET, blocks->table_targets[i]);
		finder_mark(finder, MARK_SUSPECT, blocks->table_targets[i]);
	}
	for (unsigned i = 0; blocks->unknown_jumps && i < scan->table_count; i++)
		mark_table(finder, scan->tables[i]);
	function->blocks = (uint16_t)(blocks->count < UINT16_MAX ? blocks->count : UINT16_MAX);
	function->loops = (uint16_t)(blocks->loops < UINT16_MAX ? blocks->loops : UINT16_MAX);
	if (blocks->loops)
		function->flags |= PLAN_FUNCTION_LOOPS;
	if (blocks->unknown_jumps)
		function->flags |= PLAN_FUNCTION_BRANCHES_OUT;
	if (blocks->has_tail_jump)
		function->flags |= PLAN_FUNCTION_TAIL;
}

static int scan_function(struct finder *finder, struct blocks *blocks, size_t index)
{
	struct function *function = &finder->functions->list[index];
	struct scan scan = {.finder = finder, .function = function};
	struct blocks_image image = {.ranges = finder->functions->loaded,
				     .range_count = finder->functions->loaded_count,
				     .code_low = finder->functions->targets_low,
				     .code_high = finder->functions->targets_high,
				     .each = scan_each,
				     .context = &scan};
	size_t left;
	uint64_t size = function->size;
	int error;

	scan.bytes = functions_bytes(finder->functions, function->vaddr, &left);
	if (!scan.bytes)
		return 0;
	/* Overlapping ones are looked through once. */
	if (index + 1 < finder->functions->count && function[1].vaddr - function->vaddr < size)
		size = function[1].vaddr - function->vaddr;
	scan.extra = &finder->extra[index];
	scan.entry = function->vaddr;
	if (size >= ENDBR_SIZE && !memcmp(scan.bytes, endbr64, ENDBR_SIZE))
		scan.entry += ENDBR_SIZE;
	function->instructions = 0;
	stack_watch_start(&scan.watch, finder, scan.extra->frame, function->vaddr);
	error = blocks_find(blocks, &image, scan.bytes, function->vaddr, (uint32_t)size);
	if (error)
		return error;
	if (blocks->decoded < size)
		scan_bytes(&scan, scan.bytes + blocks->decoded, function->vaddr + blocks->decoded,
			   size - blocks->decoded);
	note_blocks(&scan, blocks);
	finish(&scan);
	return 0;
}

/* Or data among code, as assembly has it: constants hardly ever decode to the end. */
static bool is_code(const uint8_t *bytes, size_t size)
{
	struct instruction instruction;

	for (size_t at = 0; at < size; at += instruction.length) {
		if (!instruction_decode(bytes + at, size - at, at, &instruction))
			return false;
	}
	return true;
}

static void scan_between(struct finder *finder, uint64_t low, uint64_t high)
{
	struct scan scan = {.finder = finder};
	size_t left;
	const uint8_t *bytes = functions_bytes(finder->functions, low, &left);

	if (!bytes || low >= high)
		return;
	if (high - low < left)
		left = high - low;
	if (is_code(bytes, left))
		scan_bytes(&scan, bytes, low, left);
}

/* Stubs of procedure linkage tables that lead to what returns twice. */
static void mark_linkage(struct finder *finder)
{
	const struct elf_file *file = finder->file;

	for (size_t i = 0; finder->twice_slot_count && i < file->section_count; i++) {
		const struct elf_section *section = &file->sections[i];
		struct instruction instruction = {0};
		size_t left = 0;
		const uint8_t *bytes;
		if (strncmp(section->name, ".plt", 4))
			continue;
		bytes = functions_bytes(finder->functions, section->address, &left);
		for (size_t at = 0; bytes && at < left && at < section->size;
		     at += instruction.length) {
			if (!instruction_decode(bytes + at, left - at, section->address + at,
						&instruction)) {
				instruction.length = 1;
				continue;
			}
			if (instruction.flow != INSTRUCTION_JUMP_INDIRECT ||
			    !instruction.rip_relative || !is_twice_slot(finder, instruction.target))
				continue;
			/* Its first instruction, or its second behind endbr64. */
			finder_mark(finder, MARK_TWICE, section->address + at);
			finder_mark(finder, MARK_TWICE, (section->address + at) & ~(uint64_t)15);
		}
	}
}

/* All functions, looked through by several threads. */
struct work {
	struct finder *finder;
	_Atomic size_t next;
	_Atomic int error;
};

static void *work_on(void *argument)
{
	struct work *work = argument;
	size_t count = work->finder->functions->count;
	struct blocks blocks;
	int error = blocks_init(&blocks);

	while (!error && !atomic_load(&work->error)) {
		size_t first = atomic_fetch_add(&work->next, SHARE);
		size_t end;

		if (first >= count)
			break;
		end = count - first < SHARE ? count : first + SHARE;
		for (size_t i = first; !error && i < end; i++)
			error = scan_function(work->finder, &blocks, i);
	}
	if (error)
		atomic_store(&work->error, error);
	blocks_deinit(&blocks);
	return NULL;
}

static int scan_functions(struct finder *finder)
{
	struct work work = {.finder = finder};
	pthread_t threads[THREADS_MAX];
	long wanted = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = finder->functions->count / (SHARE * SHARES_MIN);
	unsigned started = 0;

	/* This thread is one of them; where no other can be started it does all. */
	while (started < THREADS_MAX && started < most && (long)started + 1 < wanted &&
	       !pthread_create(&threads[started], NULL, work_on, &work))
		started++;
	work_on(&work);
	while (started)
		pthread_join(threads[--started], NULL);
	return atomic_load(&work.error);
}

/* Functions that jump to what returns twice do so themselves; the stub's return address would be
 * kept and used again. True: there are new ones, and others may jump to these. */
static bool note_twice(struct finder *finder)
{
	struct functions *functions = finder->functions;
	bool any = false;

	for (size_t i = 0; i < functions->count; i++) {
		if (!finder->extra[i].leads_twice || functions->list[i].reason)
			continue;
		functions->list[i].reason = PLAN_RETURNS_TWICE;
		finder_mark(finder, MARK_TWICE, functions->list[i].vaddr);
		any = true;
	}
	return any;
}

static void scan_rest(struct finder *finder)
{
	const struct functions *functions = finder->functions;

	for (size_t c = 0, i = 0; c < functions->code_count; c++) {
		const struct code_range *range = &functions->code[c];
		uint64_t at = range->vaddr, end = range->vaddr + range->size;
		for (; i < functions->count && functions->list[i].vaddr < end; i++) {
			const struct function *function = &functions->list[i];
			scan_between(finder, at, function->vaddr);
			if (function->vaddr + function->size > at)
				at = function->vaddr + function->size;
		}
		scan_between(finder, at, end);
	}
}

int finder_scan(struct finder *finder)
{
	const struct functions *functions = finder->functions;
	bool again = true;
	int error = 0;

	for (size_t i = 0; i < functions->count; i++) {
		if (functions->list[i].reason == PLAN_RETURNS_TWICE)
			finder_mark(finder, MARK_TWICE, functions->list[i].vaddr);
	}
	finder_note_linker_code(finder);
	mark_linkage(finder);
	scan_rest(finder);
	for (unsigned i = 0; !error && again && i < SCANS_MAX; i++) {
		error = scan_functions(finder);
		again = !error && note_twice(finder);
	}
	if (!error)
		finder_decide(finder);
	return error;
}
