/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See coverage.h. What a file has is known from its code: a module's code object has those of its
 * functions and classes among its constants. So functions that nobody calls are known as well, as
 * soon as their module runs.
 */
#include "python/coverage.h"

#include <errno.h>
#include <string.h>

#include "common/leb128.h"
#include "core/sampler.h"
#include "core/threads.h"
#include "python/expressions.h"
#include "python/functions.h"
#include "regions/state.h"

#define NAME_BYTES_MAX     1000u
#define FILE_BYTES_MAX     3000u
#define CONSTANTS_BEFORE   56u /* PyCodeObject.co_consts, up to 3.10 and later */
#define CONSTANTS_AFTER    24u
#define TUPLE_SIZE_OFFSET  16u
#define TUPLE_ITEMS_OFFSET 24u
#define NESTING_MAX        32u
#define CONSTANTS_MAX      65536u

/* In the place of the region of a code object: its id, and whether a call of it was noted. */
#define COVERAGE_CALLED   (1u << 31)
#define COVERAGE_LEFT_OUT 0u

struct describing {
	uint8_t scratch[INTERPRETED_SCRATCH_SIZE];
	char name[NAME_BYTES_MAX + 1], file[FILE_BYTES_MAX + 1];
	struct interpreter interpreter;
	struct native_stack stack;
	struct interpreted_merge merge;
	struct interpreted_walk walk;
};

static bool write_coverage_record(uint32_t id, uint32_t what)
{
	uint8_t payload[2 * LEB128_BYTES_MAX], *end = payload;

	if (!kymo_thread)
		return false;
	end = leb128_write(end, id);
	end = leb128_write(end, what);
	return sampler_write_record_outside_handler(kymo_thread, SPOOL_RECORD_INTERPRETED_COVERAGE,
						    payload, (size_t)(end - payload));
}

/* ---- new code ---- */

static void begin_describing(struct describing *describing)
{
	describing->interpreter = (struct interpreter){
		.layout = &kymo_python.layout,
		.code_type = (uint64_t)(uintptr_t)kymo_python.functions[PYTHON_CODE_TYPE]};
	describing->stack = (struct native_stack){.frames = NULL};
	describing->merge = (struct interpreted_merge){
		.scratch = describing->scratch,
		.sink = {sampler_write_record_outside_handler, kymo_thread}};
	describing->walk = (struct interpreted_walk){.interpreter = &describing->interpreter,
						     .stack = &describing->stack,
						     .merge = &describing->merge,
						     .trusts_memory = true,
						     .checked_reads_left = UINT32_MAX};
}

static bool copy_text(struct describing *describing, uint64_t object, char *to, uint32_t most)
{
	uint32_t size;

	if (!python_copy_text(&kymo_python.layout, object, describing->scratch, (uint8_t *)to, most,
			      &size))
		return false;
	to[size] = '\0';
	return true;
}

static bool is_selected(struct describing *describing, uint64_t code)
{
	const struct python_layout *layout = &kymo_python.layout;

	return copy_text(describing, python_read_word(code, layout->code_name), describing->name,
			 NAME_BYTES_MAX) &&
	       copy_text(describing, python_read_word(code, layout->code_file), describing->file,
			 FILE_BYTES_MAX) &&
	       python_expressions_select(describing->name, describing->file);
}

static void get_identity(uint64_t code, struct code_identity *ret)
{
	const struct python_layout *layout = &kymo_python.layout;

	*ret = (struct code_identity){
		.address = code,
		.name = python_read_word(code, layout->code_name),
		.file = python_read_word(code, layout->code_file),
		.line_table = python_read_word(code, layout->code_line_table),
		.first_line = *(const uint32_t *)(uintptr_t)(code + layout->code_first_line)};
}

/* NULL: there is no room, or it could not be described, and is tried again when it is called. */
static struct code_slot *describe_code(struct describing *describing, uint64_t code)
{
	struct code_identity identity;
	struct code_slot *slot;
	uint32_t id = COVERAGE_LEFT_OUT;

	get_identity(code, &identity);
	slot = code_table_find_or_add(&identity);
	if (!slot)
		return NULL;
	if (atomic_load_explicit(&slot->has_call_region, memory_order_acquire))
		return slot;
	if (is_selected(describing, code)) {
		id = python_code_find_id(&describing->walk, code);
		if (id == PYTHON_CODE_HIDDEN)
			id = COVERAGE_LEFT_OUT;
		else if (!id || describing->walk.cannot_describe || !write_coverage_record(id, 0))
			return NULL;
	}
	slot->call_region = id;
	atomic_store_explicit(&slot->has_call_region, 1, memory_order_release);
	return slot;
}

static uint64_t get_constants(uint64_t code, uint64_t *ret_count)
{
	uint64_t tuple = python_read_word(code, kymo_python.layout.minor < 11 ? CONSTANTS_BEFORE
									      : CONSTANTS_AFTER);

	*ret_count = tuple ? python_read_word(tuple, TUPLE_SIZE_OFFSET) : 0;
	if (*ret_count > CONSTANTS_MAX)
		*ret_count = 0;
	return tuple;
}

/* With the code that it contains, however deep. */
static struct code_slot *describe_code_and_contents(struct describing *describing, uint64_t code,
						    uint32_t nesting)
{
	struct code_slot *slot = describe_code(describing, code);
	uint64_t count, constants = get_constants(code, &count);

	for (uint64_t i = 0; slot && nesting < NESTING_MAX && i < count; i++) {
		uint64_t constant = python_read_word(constants + 8 * i, TUPLE_ITEMS_OFFSET);

		if (constant && python_object_has_type(constant, PYTHON_CODE_TYPE))
			describe_code_and_contents(describing, constant, nesting + 1);
	}
	return slot;
}

static __attribute__((noinline)) struct code_slot *describe_new_code(uint64_t code)
{
	struct describing describing;
	struct code_slot *slot = NULL;
	int error = errno;

	region_enter_kymo_code();
	if (kymo_thread) {
		begin_describing(&describing);
		slot = describe_code_and_contents(&describing, code, 0);
	}
	region_leave_kymo_code();
	errno = error;
	return slot;
}

static struct code_slot *find_slot(uint64_t code)
{
	struct code_slot *slots = atomic_load_explicit(&code_table_slots, memory_order_relaxed);
	struct code_slot *slot = &slots[code_table_hash(code)];

	if (__builtin_expect(
		    atomic_load_explicit(&slot->address, memory_order_acquire) == code &&
			    atomic_load_explicit(&slot->has_call_region, memory_order_acquire) &&
			    python_slot_is_of_code(slot, code),
		    1))
		return slot;
	return describe_new_code(code);
}

/* ---- what runs ---- */

bool python_coverage_note_call(uint64_t code)
{
	struct code_slot *slot = find_slot(code);

	if (!slot)
		return false;
	if (slot->call_region == COVERAGE_LEFT_OUT || slot->call_region & COVERAGE_CALLED)
		return true;
	if (!write_coverage_record(slot->call_region, 1))
		return false;
	slot->call_region |= COVERAGE_CALLED;
	return true;
}

bool python_coverage_note_line(uint64_t code, uint32_t line)
{
	struct code_slot *slot = find_slot(code);

	return slot && (slot->call_region == COVERAGE_LEFT_OUT || line >= UINT32_MAX - 1 ||
			write_coverage_record(slot->call_region & ~COVERAGE_CALLED, line + 1));
}
