/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See functions.h. Objects are read as they lie in memory: whoever calls holds the interpreter's
 * lock and a reference to the code, so that nothing changes meanwhile, and no function of the
 * interpreter is called, which could run code of the program.
 */
#include "python/functions.h"

#include <errno.h>
#include <string.h>

#include "core/base/text.h"
#include "python/expressions.h"
#include "regions/names.h"
#include "regions/state.h"

#define NAME_BYTES_MAX 1000u
#define FILE_BYTES_MAX 3000u
#define TEXT_BYTES_MAX (NAME_BYTES_MAX + FILE_BYTES_MAX + 32)

/* PyCFunctionObject, PyMethodDescrObject, PyTypeObject, PyModuleObject: all versions */
#define C_FUNCTION_METHOD_OFFSET 16u
#define C_FUNCTION_SELF_OFFSET   24u
#define C_FUNCTION_MODULE_OFFSET 32u
#define DESCRIPTOR_TYPE_OFFSET   16u
#define DESCRIPTOR_METHOD_OFFSET 40u
#define TYPE_NAME_OFFSET         24u
#define TYPE_FLAGS_OFFSET        168u
#define TYPE_IS_SUBCLASS_OF_TYPE (1ul << 31)
#define C_FUNCTION_MARK          1u /* in the place of a file: no code object has such an address */

struct function_text {
	uint8_t scratch[INTERPRETED_SCRATCH_SIZE];
	char name[NAME_BYTES_MAX + 1], file[FILE_BYTES_MAX + 1];
	char region[TEXT_BYTES_MAX];
};

static bool copy_object_text(struct function_text *text, uint64_t object, char *to, uint32_t most)
{
	uint32_t size;

	if (!python_copy_text(&kymo_python.layout, object, text->scratch, (uint8_t *)to, most,
			      &size))
		return false;
	to[size] = '\0';
	return true;
}

/* The part that tells files apart: "__init__.py" alone is one of many. */
static const char *shorten_file(const char *file)
{
	const char *last = strrchr(file, '/'), *before;

	if (!last)
		return file;
	if (strncmp(last + 1, "__", 2) != 0)
		return last + 1;
	for (before = last; before > file && before[-1] != '/'; before--)
		;
	return before;
}

/* "NAME (FILE:LINE)", or what the user wants of it. */
static const char *format_region(struct function_text *text, const char *file, uint32_t line)
{
	const struct python_call_options *options = kymo_python.options;
	struct text_buffer to = text_buffer_init(text->region, sizeof(text->region));

	text_append_string(&to, text->name);
	if (!options->label_has_file && !options->label_has_line)
		return text->region;
	text_append_string(&to, " (");
	if (options->label_has_file)
		text_append_string(&to, file);
	if (options->label_has_line) {
		text_append_string(&to, options->label_has_file ? ":" : "line ");
		text_append_unsigned(&to, line);
	}
	text_append_character(&to, ')');
	return text->region;
}

/* Functions of two files whose shortened names and lines are the same are two regions: the second
 * one has the whole path. Which file a region's name stands for is kept by its number. */
static bool region_belongs_to_other_file(region_id region, const char *file)
{
	static _Atomic(_Atomic uint32_t *) file_hashes;
	_Atomic uint32_t *hashes = atomic_load(&file_hashes), *none = NULL;
	uint32_t hash = 2166136261u, known = 0;

	if (!hashes) {
		hashes = region_map_memory((size_t)NAMES_MAX * sizeof(*hashes));
		if (!hashes)
			return false;
		if (!atomic_compare_exchange_strong(&file_hashes, &none, hashes))
			hashes = none;
	}
	for (; *file; file++)
		hash = (hash ^ (uint8_t)*file) * 16777619u;
	hash |= 1;
	if ((region & REGION_NUMBER_MASK) >= NAMES_MAX)
		return false;
	return !atomic_compare_exchange_strong(&hashes[region & REGION_NUMBER_MASK], &known,
					       hash) &&
	       known != hash;
}

static region_id find_region(struct function_text *text, uint32_t line)
{
	const struct python_call_options *options = kymo_python.options;
	const char *shortened = options->has_full_path ? text->file : shorten_file(text->file);
	region_id region =
		region_find_or_add_name(REGION_PYTHON, format_region(text, shortened, line));

	if (region && options->label_has_file && shortened != text->file &&
	    region_belongs_to_other_file(region, text->file))
		region = region_find_or_add_name(REGION_PYTHON,
						 format_region(text, text->file, line));
	return region;
}

/* A region that is to be had later is looked for at the next call. */
static void set_region(struct code_slot *slot, region_id region, bool is_selected)
{
	slot->call_region = region;
	if (!region && is_selected && !(names_get_disabled_category_bits() & 1u << REGION_PYTHON))
		return;
	atomic_store_explicit(&slot->has_call_region, 1, memory_order_release);
}

/* What marks sections is in none of them. */
static bool file_is_of_kymo(const char *file)
{
	return kymo_python.options->has_sections &&
	       strstr(file, "/kymo/python/start/sitecustomize.py");
}

/* Without the stack of the fast path, which many functions of Python may be on. */
static __attribute__((noinline)) void name_new_code(struct code_slot *slot, uint64_t code,
						    uint32_t line)
{
	struct function_text text;

	if (copy_object_text(&text, python_read_word(code, kymo_python.layout.code_name), text.name,
			     NAME_BYTES_MAX) &&
	    copy_object_text(&text, python_read_word(code, kymo_python.layout.code_file), text.file,
			     FILE_BYTES_MAX) &&
	    !file_is_of_kymo(text.file) && python_expressions_select(text.name, text.file))
		set_region(slot, find_region(&text, line), true);
	else
		set_region(slot, 0, false);
}

static void get_identity(uint64_t code, struct code_identity *ret)
{
	const struct python_layout *layout = &kymo_python.layout;

	ret->address = code;
	ret->name = python_read_word(code, layout->code_name);
	ret->file = python_read_word(code, layout->code_file);
	ret->line_table = python_read_word(code, layout->code_line_table);
	ret->first_line = *(const uint32_t *)(uintptr_t)(code + layout->code_first_line);
}

__attribute__((noinline)) region_id python_name_code(uint64_t code)
{
	struct code_identity identity;
	struct code_slot *slot;
	int error;

	get_identity(code, &identity);
	slot = code_table_find_or_add(&identity);
	if (!slot) {
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_NAMES);
		return 0;
	}
	if (!atomic_load_explicit(&slot->has_call_region, memory_order_acquire)) {
		error = errno;
		region_enter_kymo_code();
		name_new_code(slot, code, identity.first_line);
		region_leave_kymo_code();
		errno = error;
	}
	return slot->call_region;
}

/* ---- functions written in C ---- */

static bool object_is_type(uint64_t object)
{
	uint64_t type = python_read_word(object, PYTHON_OBJECT_TYPE_OFFSET);

	return python_read_word(type, TYPE_FLAGS_OFFSET) & TYPE_IS_SUBCLASS_OF_TYPE;
}

/* What a function is a function of: a module's name (a str), or a type. */
static uint64_t find_owner(uint64_t function, bool *ret_is_type)
{
	uint64_t self = python_read_word(function, C_FUNCTION_SELF_OFFSET), type;

	*ret_is_type = false;
	if (!self)
		return python_read_word(function, C_FUNCTION_MODULE_OFFSET);
	type = python_read_word(self, PYTHON_OBJECT_TYPE_OFFSET);
	if (type == (uint64_t)(uintptr_t)kymo_python.functions[PYTHON_MODULE_TYPE])
		return python_read_word(function, C_FUNCTION_MODULE_OFFSET);
	*ret_is_type = true;
	return object_is_type(self) ? self : type;
}

static __attribute__((noinline)) void name_new_c_function(struct code_slot *slot, uint64_t method,
							  uint64_t owner, bool is_type)
{
	const char *name = (const char *)(uintptr_t)python_read_word(method, 0);
	struct function_text text;
	struct text_buffer to = text_buffer_init(text.name, sizeof(text.name));

	if (is_type)
		text_append_string(
			&to, (const char *)(uintptr_t)python_read_word(owner, TYPE_NAME_OFFSET));
	else if (owner && copy_object_text(&text, owner, text.file, FILE_BYTES_MAX))
		text_append_string(&to, text.file);
	if (to.length)
		text_append_character(&to, '.');
	text_append_string(&to, name);
	if (!python_expressions_select(text.name, "(C)")) {
		set_region(slot, 0, false);
		return;
	}
	text_append_string(&to, " (C)");
	set_region(slot, region_find_or_add_name(REGION_PYTHON, text.name), true);
}

static region_id find_region_of_method(uint64_t method, uint64_t owner, bool is_type)
{
	struct code_identity identity = {.address = method, .name = owner, .file = C_FUNCTION_MARK};
	struct code_slot *slot = code_table_find_or_add(&identity);
	int error;

	if (!slot) {
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_NAMES);
		return 0;
	}
	if (!atomic_load_explicit(&slot->has_call_region, memory_order_acquire)) {
		error = errno;
		region_enter_kymo_code();
		name_new_c_function(slot, method, owner, is_type);
		region_leave_kymo_code();
		errno = error;
	}
	return slot->call_region;
}

region_id python_find_region_of_c_function(const python_object *function)
{
	uint64_t object = (uint64_t)(uintptr_t)function, owner;
	bool is_type;

	if (!python_object_has_type(object, PYTHON_C_FUNCTION_TYPE))
		return 0;
	owner = find_owner(object, &is_type);
	return find_region_of_method(python_read_word(object, C_FUNCTION_METHOD_OFFSET), owner,
				     is_type);
}

region_id python_find_region_of_c_callable(const python_object *callable)
{
	uint64_t object = (uint64_t)(uintptr_t)callable;

	if (!python_object_has_type(object, PYTHON_METHOD_DESCRIPTOR_TYPE))
		return python_find_region_of_c_function(callable);
	return find_region_of_method(python_read_word(object, DESCRIPTOR_METHOD_OFFSET),
				     python_read_word(object, DESCRIPTOR_TYPE_OFFSET), true);
}

/* ---- ends ---- */

bool python_code_is_left_out(uint64_t code)
{
	const struct code_slot *slot = code_table_find_address(code);

	return slot && atomic_load_explicit(&slot->has_call_region, memory_order_relaxed) &&
	       !slot->call_region && python_slot_is_of_code(slot, code);
}

bool python_function_is_open(region_id region)
{
	const struct region_thread_state *thread = kymo_region_thread;

	if (thread->skipped || region_thread_is_busy())
		return true;
	for (uint32_t i = thread->depth; i > 0; i--) {
		if (thread->frames[i - 1].region == region)
			return true;
	}
	return false;
}
