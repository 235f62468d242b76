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

#include "binary/functions/blocks.h"
#include "binary/functions/private.h"

#define FUNCTION_DATA_ADDRESSES_MAX                                                                \
	64 /* addresses of data that one function holds, at most remembered */
#define OUTSIDE_JUMP_TARGETS_MAX                                                                   \
	256 /* places outside that one function jumps to, at most remembered */
#define DISTANCE_TABLE_ENTRIES_MAX 65536u
#define SCAN_PASSES_MAX            64
#define ENDBR64_LENGTH             4

#define SCAN_THREADS_MAX               8
#define FUNCTIONS_PER_SCAN_BATCH_COUNT 64u /* functions that a thread takes at a time */
#define SCAN_BATCHES_PER_THREAD_LEAST  8u  /* a thread more is worth its start for so many */

static const uint8_t endbr64_bytes[ENDBR64_LENGTH] = {0xf3, 0x0f, 0x1e, 0xfa};

/* One function, while it is looked through. */
struct function_scan_state {
	struct function_finder *finder;
	struct function *function; /* NULL: code between functions */
	struct finder_function_facts *facts;
	const uint8_t *bytes; /* its code */
	struct stack_watch_state stack_watch;
	uint64_t entry_behind_endbr64; /* behind endbr64 */
	uint64_t possible_tables[FUNCTION_DATA_ADDRESSES_MAX];
	unsigned possible_table_count;
	uint64_t outside_jump_targets[OUTSIDE_JUMP_TARGETS_MAX];
	unsigned outside_jump_target_count;
	bool has_return_instruction, has_undecodable_bytes, jumps_to_own_entry,
		jumps_to_returning_twice;
	struct code_address_watch code_addresses;
	uint8_t added_to_rsp, added_to_rbp; /* 1 + register */
};

/* A table of distances from its own start, as compilers make them for switch in position-
 * independent code. Where a jump is not understood, anything that a lea of the same function points
 * to is tried: other data does not lead into code. It may go on too far, into a table of another
 * base, which marks more than there is. */
static void mark_targets_of_distance_table(struct function_finder *finder, uint64_t table)
{
	size_t left;
	const uint8_t *bytes = functions_get_loaded_bytes_at(finder->functions, table, &left);

	if (!bytes || table & 3)
		return;
	for (uint32_t i = 0; i < DISTANCE_TABLE_ENTRIES_MAX && left >= 4 * (i + 1); i++) {
		int32_t distance;
		uint64_t target;
		memcpy(&distance, bytes + 4 * i, sizeof(distance));
		target = table + (uint64_t)(int64_t)distance;
		if (!finder_is_in_code(finder, target) || finder_is_in_code(finder, table))
			return;
		finder_mark_address(finder, MARK_CONTROL_TARGET, target);
	}
}

static void mark_or_collect_operand_address(struct function_scan_state *scan,
					    const struct instruction *instruction)
{
	struct function_finder *finder = scan->finder;
	bool is_lea = !instruction->opcode_map && instruction->opcode == 0x8d &&
		      !instruction->has_vector_prefix;

	if (finder_is_in_code(finder, instruction->target)) {
		finder_mark_address(finder, MARK_CONTROL_TARGET, instruction->target);
		if (is_lea && scan->function)
			finder_mark_address(finder, MARK_CALLED_OR_ADDRESS_TAKEN,
					    instruction->target);
	} else if (is_lea && scan->possible_table_count < FUNCTION_DATA_ADDRESSES_MAX) {
		scan->possible_tables[scan->possible_table_count++] = instruction->target;
	}
}

/* In programs at fixed addresses code is named by constants. */
static void mark_immediate_as_code_address(struct function_scan_state *scan, const uint8_t *bytes,
					   const struct instruction *instruction)
{
	uint64_t value = 0;

	if (instruction->immediate_size < 4)
		return;
	memcpy(&value, bytes + instruction->immediate_offset,
	       instruction->immediate_size > 8 ? 8 : instruction->immediate_size);
	finder_mark_address(scan->finder, MARK_CONTROL_TARGET, value);
	if (scan->function)
		finder_mark_address(scan->finder, MARK_CALLED_OR_ADDRESS_TAKEN, value);
}

static bool is_target_inside_function(const struct function_scan_state *scan, uint64_t target)
{
	return scan->function && target - scan->function->vaddr < scan->function->size;
}

static void record_jump_target(struct function_scan_state *scan,
			       const struct instruction *instruction)
{
	struct function_finder *finder = scan->finder;
	uint64_t target = instruction->target;

	finder_mark_address(finder, MARK_CONTROL_TARGET, target);
	if (!scan->function)
		return;
	if (is_target_inside_function(scan, target)) {
		if (target == scan->function->vaddr || target == scan->entry_behind_endbr64)
			scan->jumps_to_own_entry = true;
		return;
	}
	if (instruction->flow == INSTRUCTION_JUMP)
		scan->function->flags |= PLAN_FUNCTION_TAIL;
	scan->jumps_to_returning_twice |= finder_has_mark(finder, MARK_RETURNS_TWICE, target);
	if (scan->outside_jump_target_count < OUTSIDE_JUMP_TARGETS_MAX)
		scan->outside_jump_targets[scan->outside_jump_target_count++] = target;
}

static void record_use_of_import(struct function_scan_state *scan,
				 const struct instruction *instruction)
{
	enum finder_import_kind kind;

	if (!scan->function || instruction->flow == INSTRUCTION_RETURN)
		return;
	kind = finder_get_import_of_branch(scan->finder, instruction);
	if (kind == IMPORT_OTHER)
		return;
	if (kind == IMPORT_FRAME_ADDRESS)
		scan->facts->asks_frame_address = true;
	if (instruction->flow == INSTRUCTION_CALL || instruction->flow == INSTRUCTION_CALL_INDIRECT)
		return;
	if (kind == IMPORT_RETURNS_TWICE)
		scan->jumps_to_returning_twice = true;
	if (kind == IMPORT_READS_CALLER)
		scan->facts->looks_at_caller = true;
}

static void record_control_flow(struct function_scan_state *scan,
				const struct instruction *instruction)
{
	struct function_finder *finder = scan->finder;

	record_use_of_import(scan, instruction);
	switch (instruction->flow) {
	case INSTRUCTION_JUMP:
	case INSTRUCTION_BRANCH:
		record_jump_target(scan, instruction);
		break;
	case INSTRUCTION_CALL:
		finder_mark_address(finder, MARK_CONTROL_TARGET, instruction->target);
		/* What looks like calls in data between functions proves nothing. */
		if (scan->function)
			finder_mark_address(finder, MARK_CALLED_OR_ADDRESS_TAKEN,
					    instruction->target);
		break;
	case INSTRUCTION_JUMP_INDIRECT:
		if (instruction->is_rip_relative && scan->function)
			scan->function->flags |= PLAN_FUNCTION_TAIL;
		break;
	case INSTRUCTION_CALL_INDIRECT:
		if (scan->function && !instruction->is_rip_relative)
			scan->function->flags |= PLAN_FUNCTION_INDIRECT;
		break;
	case INSTRUCTION_RETURN:
		scan->has_return_instruction = true;
		break;
	default:
		break;
	}
}

/* Stacks that are copied away are copied back, by code which adds the same distance to both
 * pointers to get to the frames of the other coroutine; compilers have no use for that. */
static void record_frame_shift(struct function_scan_state *scan,
			       const struct instruction *instruction)
{
	bool to_rm = instruction->opcode == 0x01;
	unsigned rm = (instruction->modrm & 7u) | (instruction->rex & INSTRUCTION_REX_B ? 8u : 0),
		 reg = (instruction->modrm >> 3 & 7u) |
		       (instruction->rex & INSTRUCTION_REX_R ? 8u : 0),
		 to = to_rm ? rm : reg, from = to_rm ? reg : rm;

	if (to == 4)
		scan->added_to_rsp = (uint8_t)(from + 1);
	if (to == 5)
		scan->added_to_rbp = (uint8_t)(from + 1);
	if (scan->added_to_rsp && scan->added_to_rsp == scan->added_to_rbp)
		__atomic_store_n(&scan->finder->functions->shifts_frames, true, __ATOMIC_RELAXED);
}

static bool is_addition_of_registers(const struct instruction *instruction)
{
	return (instruction->opcode & 0xfd) == 0x01 && !instruction->opcode_map &&
	       !instruction->has_vector_prefix && instruction->modrm >= 0xc0 &&
	       instruction->rex & INSTRUCTION_REX_W;
}

static void record_instruction_facts(struct function_scan_state *scan, const uint8_t *bytes,
				     uint64_t vaddr, const struct instruction *instruction)
{
	if (scan->function) {
		scan->function->instruction_count++;
		if (instruction_needs_stack_watch_step(instruction))
			stack_watch_step_instruction(&scan->stack_watch, bytes, instruction, vaddr);
		if (is_addition_of_registers(instruction))
			record_frame_shift(scan, instruction);
		code_address_watch_step(&scan->code_addresses, scan->finder, bytes, instruction,
					vaddr);
	}
	/* Functions of the large code model begin with the load of an address of their own, from
	 * which they go to data (System V ABI 3.5.4); nothing jumps there. */
	if (instruction->is_rip_relative && instruction->target != vaddr)
		mark_or_collect_operand_address(scan, instruction);
	if (instruction->flow != INSTRUCTION_NEXT)
		record_control_flow(scan, instruction);
	else if (scan->finder->has_absolute_addresses && instruction->immediate_size >= 4)
		mark_immediate_as_code_address(scan, bytes, instruction);
}

/* For blocks_find_in_function. */
static void visit_instruction_in_block_search(void *context, uint64_t vaddr,
					      const struct instruction *instruction)
{
	struct function_scan_state *scan = context;

	record_instruction_facts(scan, scan->bytes + (vaddr - scan->function->vaddr), vaddr,
				 instruction);
}

static void scan_code_bytes(struct function_scan_state *scan, const uint8_t *bytes, uint64_t vaddr,
			    uint64_t size)
{
	struct instruction instruction;

	for (uint64_t at = 0; at < size; at += instruction.length) {
		if (instruction_decode(bytes + at, size - at, vaddr + at, &instruction)) {
			record_instruction_facts(scan, bytes + at, vaddr + at, &instruction);
		} else {
			scan->has_undecodable_bytes = true;
			instruction.length = 1;
		}
	}
}

/* The functions that it jumps to: who does, and whether memory below rsp may be alive then. */
static void record_jump_source_of_function(struct finder_function_facts *extra, uint32_t self,
					   bool red_zone)
{
	uint32_t before = __atomic_load_n(&extra->source, __ATOMIC_RELAXED);

	while (before != self && before != SEVERAL_JUMP_SOURCES &&
	       !__atomic_compare_exchange_n(&extra->source, &before,
					    before ? SEVERAL_JUMP_SOURCES : self, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (red_zone)
		__atomic_store_n(&extra->source_uses_red_zone, true, __ATOMIC_RELAXED);
}

static int record_functions_jumped_to(struct function_scan_state *scan)
{
	struct function_finder *finder = scan->finder;
	uint32_t self = (uint32_t)(scan->function - finder->functions->list) + 1;
	int error = 0;

	for (unsigned i = 0; !error && i < scan->outside_jump_target_count; i++) {
		const struct function *other =
			functions_find_at_address(finder->functions, scan->outside_jump_targets[i]);

		if (!other || other->reason == PLAN_LINKER_CODE)
			continue;
		if (other->vaddr != scan->outside_jump_targets[i]) {
			scan->facts->jumps_into_function_middle = true;
			continue;
		}
		record_jump_source_of_function(
			&finder->function_facts[other - finder->functions->list], self,
			scan->stack_watch.uses_red_zone);
		error = finder_add_tail_jump(finder, self - 1,
					     (uint32_t)(other - finder->functions->list));
	}
	return error;
}

static int record_function_scan_results(struct function_scan_state *scan)
{
	struct function *function = scan->function;
	const struct stack_watch_state *watch = &scan->stack_watch;

	scan->facts->jumps_to_own_entry = scan->jumps_to_own_entry;
	if (scan->has_undecodable_bytes)
		function->instruction_count = 0;
	if (!scan->has_return_instruction && !(function->flags & PLAN_FUNCTION_TAIL))
		function->flags |= PLAN_FUNCTION_RETURNS_NOT;
	if (watch->reads_return_address || watch->switches)
		scan->facts->reads_return_address = true;
	/* What changes stacks only takes it along. */
	if (watch->loads_return_address && !watch->switches)
		scan->facts->looks_at_caller = true;
	scan->facts->jumps_to_returning_twice = scan->jumps_to_returning_twice;
	return record_functions_jumped_to(scan);
}

static void record_block_facts(struct function_scan_state *scan, const struct basic_blocks *blocks)
{
	struct function *function = scan->function;
	struct function_finder *finder = scan->finder;

	for (uint32_t i = 0; i < blocks->table_target_count; i++) {
		finder_mark_address(finder, MARK_CONTROL_TARGET, blocks->table_targets[i]);
		finder_mark_address(finder, MARK_PROBABLE_FUNCTION_PART, blocks->table_targets[i]);
	}
	for (unsigned i = 0; blocks->unknown_table_jump_count && i < scan->possible_table_count;
	     i++)
		mark_targets_of_distance_table(finder, scan->possible_tables[i]);
	function->blocks = (uint16_t)(blocks->count < UINT16_MAX ? blocks->count : UINT16_MAX);
	function->loops = (uint16_t)(blocks->loops < UINT16_MAX ? blocks->loops : UINT16_MAX);
	if (blocks->loops)
		function->flags |= PLAN_FUNCTION_LOOPS;
	if (blocks->unknown_table_jump_count)
		function->flags |= PLAN_FUNCTION_BRANCHES_OUT;
	if (blocks->has_tail_jump)
		function->flags |= PLAN_FUNCTION_TAIL;
}

static int scan_function(struct function_finder *finder, struct basic_blocks *blocks, size_t index)
{
	struct function *function = &finder->functions->list[index];
	struct function_scan_state scan = {.finder = finder, .function = function};
	struct blocks_analysis_input image = {.ranges = finder->functions->loaded_ranges,
					      .range_count = finder->functions->loaded_range_count,
					      .code_low = finder->functions->targets_low,
					      .code_high = finder->functions->targets_high,
					      .each = visit_instruction_in_block_search,
					      .context = &scan};
	size_t left;
	uint64_t size = function->size;
	int error;

	scan.bytes = functions_get_code_bytes_at(finder->functions, function->vaddr, &left);
	if (!scan.bytes)
		return 0;
	/* Overlapping ones are looked through once. */
	if (index + 1 < finder->functions->count && function[1].vaddr - function->vaddr < size)
		size = function[1].vaddr - function->vaddr;
	scan.facts = &finder->function_facts[index];
	scan.entry_behind_endbr64 = function->vaddr;
	if (size >= ENDBR64_LENGTH && !memcmp(scan.bytes, endbr64_bytes, ENDBR64_LENGTH))
		scan.entry_behind_endbr64 += ENDBR64_LENGTH;
	function->instruction_count = 0;
	scan.code_addresses =
		(struct code_address_watch){.vaddr = function->vaddr, .size = function->size};
	stack_watch_begin_at_function(&scan.stack_watch, finder, scan.facts->frame,
				      function->vaddr);
	error = blocks_find_in_function(blocks, &image, scan.bytes, function->vaddr,
					(uint32_t)size);
	if (error)
		return error;
	if (blocks->decoded_bytes < size)
		scan_code_bytes(&scan, scan.bytes + blocks->decoded_bytes,
				function->vaddr + blocks->decoded_bytes,
				size - blocks->decoded_bytes);
	record_block_facts(&scan, blocks);
	return record_function_scan_results(&scan);
}

/* Or data among code, as assembly has it: constants hardly ever decode to the end. */
static bool bytes_decode_as_code(const uint8_t *bytes, size_t size)
{
	struct instruction instruction;

	for (size_t at = 0; at < size; at += instruction.length) {
		if (!instruction_decode(bytes + at, size - at, at, &instruction))
			return false;
	}
	return true;
}

static void scan_gap_between_functions_if_code(struct function_finder *finder, uint64_t low,
					       uint64_t high)
{
	struct function_scan_state scan = {.finder = finder};
	size_t left;
	const uint8_t *bytes = functions_get_code_bytes_at(finder->functions, low, &left);

	if (!bytes || low >= high)
		return;
	if (high - low < left)
		left = high - low;
	if (bytes_decode_as_code(bytes, left))
		scan_code_bytes(&scan, bytes, low, left);
}

/* All functions, looked through by several threads. */
struct parallel_scan_state {
	struct function_finder *finder;
	_Atomic size_t next;
	_Atomic int error;
};

static void *scan_functions_in_thread(void *argument)
{
	struct parallel_scan_state *work = argument;
	size_t count = work->finder->functions->count;
	struct basic_blocks blocks;
	int error = blocks_init(&blocks);

	while (!error && !atomic_load(&work->error)) {
		size_t first = atomic_fetch_add(&work->next, FUNCTIONS_PER_SCAN_BATCH_COUNT);
		size_t end;

		if (first >= count)
			break;
		end = count - first < FUNCTIONS_PER_SCAN_BATCH_COUNT
			      ? count
			      : first + FUNCTIONS_PER_SCAN_BATCH_COUNT;
		for (size_t i = first; !error && i < end; i++)
			error = scan_function(work->finder, &blocks, i);
	}
	if (error)
		atomic_store(&work->error, error);
	blocks_deinit(&blocks);
	return NULL;
}

static int scan_functions_in_parallel(struct function_finder *finder)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct parallel_scan_state work = {.finder = finder};
	pthread_t threads[SCAN_THREADS_MAX];
	long wanted = sysconf(_SC_NPROCESSORS_ONLN);
	size_t most = finder->functions->count /
		      (FUNCTIONS_PER_SCAN_BATCH_COUNT * SCAN_BATCHES_PER_THREAD_LEAST);
	unsigned started = 0;

	finder->tail_jump_lock = &lock;
	finder->tail_jump_count = 0;
	/* This thread is one of them; where no other can be started it does all. */
	while (started < SCAN_THREADS_MAX && started < most && (long)started + 1 < wanted &&
	       !pthread_create(&threads[started], NULL, scan_functions_in_thread, &work))
		started++;
	scan_functions_in_thread(&work);
	while (started)
		pthread_join(threads[--started], NULL);
	finder->tail_jump_lock = NULL;
	return atomic_load(&work.error);
}

/* Functions that jump to what returns twice do so themselves; the stub's return address would be
 * kept and used again. True: there are new ones, and others may jump to these. */
static bool propagate_returns_twice_by_jumps(struct function_finder *finder)
{
	struct functions *functions = finder->functions;
	bool any = false;

	for (size_t i = 0; i < functions->count; i++) {
		if (!finder->function_facts[i].jumps_to_returning_twice ||
		    functions->list[i].reason)
			continue;
		functions->list[i].reason = PLAN_RETURNS_TWICE;
		finder_mark_address(finder, MARK_RETURNS_TWICE, functions->list[i].vaddr);
		any = true;
	}
	return any;
}

static void scan_code_outside_functions(struct function_finder *finder)
{
	const struct functions *functions = finder->functions;

	for (size_t c = 0, i = 0; c < functions->code_range_count; c++) {
		const struct loaded_byte_range *range = &functions->code_ranges[c];
		uint64_t at = range->vaddr, end = range->vaddr + range->size;
		for (; i < functions->count && functions->list[i].vaddr < end; i++) {
			const struct function *function = &functions->list[i];
			scan_gap_between_functions_if_code(finder, at, function->vaddr);
			if (function->vaddr + function->size > at)
				at = function->vaddr + function->size;
		}
		scan_gap_between_functions_if_code(finder, at, end);
	}
}

int finder_scan_code_and_judge_patching(struct function_finder *finder)
{
	const struct functions *functions = finder->functions;
	bool again = true;
	int error = 0;

	for (size_t i = 0; i < functions->count; i++) {
		if (functions->list[i].reason == PLAN_RETURNS_TWICE)
			finder_mark_address(finder, MARK_RETURNS_TWICE, functions->list[i].vaddr);
	}
	finder_set_plan_reason_of_linker_code(finder);
	for (size_t i = 0; i < finder->import_stubs.count; i++) {
		if (finder->import_stubs.list[i].kind == IMPORT_RETURNS_TWICE)
			finder_mark_address(finder, MARK_RETURNS_TWICE,
					    finder->import_stubs.list[i].vaddr);
	}
	scan_code_outside_functions(finder);
	for (unsigned i = 0; !error && again && i < SCAN_PASSES_MAX; i++) {
		error = scan_functions_in_parallel(finder);
		again = !error && propagate_returns_twice_by_jumps(finder);
	}
	if (error)
		return error;
	finder_decide_patchability(finder);
	finder_set_foreign_range_of_frame_address_users(finder);
	return finder_set_reason_of_jumps_to_caller_readers(finder);
}
