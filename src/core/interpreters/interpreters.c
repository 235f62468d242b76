/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which interpreters the process has; see interpreters.h. The list only grows: a library that is
 * unloaded and loaded again at another place is another entry.
 */
#include "core/interpreters/code_table.h"
#include "core/interpreters/kind.h"
#include "core/interpreters/list.h"
#include "core/interpreters/python.h"

#include "common/array.h"

#define SEARCH_PAUSE_MAX 255u /* rounds */

_Atomic uint32_t interpreters_present_count;
static _Atomic uint32_t pause_depth; /* calls that may unmap an interpreter just now */

struct interpreter interpreter_list[INTERPRETERS_MAX];
_Atomic uint32_t interpreter_list_count;

/* The table: an interpreter is a row. */
static const struct interpreter_kind *const interpreter_kinds[] = {&interpreter_kind_python};

void interpreters_inspect_file(int fd, const char *path, struct interpreter_file *ret)
{
	struct elf_exports exports;

	*ret = (struct interpreter_file){.kind = NULL};
	if (!elf_exports_open(&exports, fd))
		return;
	/* An array of pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
	for (unsigned i = 0; i < ARRAY_SIZE(interpreter_kinds); i++) {
		const struct interpreter_kind *kind = interpreter_kinds[i];

		if (!elf_exports_find(&exports, kind->symbols[0], &ret->symbols[0].address,
				      &ret->symbols[0].size))
			continue;
		ret->kind = kind;
		ret->code_bias = exports.code_bias;
		for (unsigned k = 1; k < INTERPRETER_SYMBOLS_MAX && kind->symbols[k]; k++)
			elf_exports_find(&exports, kind->symbols[k], &ret->symbols[k].address,
					 &ret->symbols[k].size);
		ret->version = kind->read_version(&exports, path);
		return;
	}
}

static void count_present_interpreters(void)
{
	uint32_t present = 0;

	for (uint32_t i = 0; i < interpreter_list_count; i++)
		present += atomic_load(&interpreter_list[i].is_present);
	/* seq_cst on all: a pause that begins in between is seen by one of the two looks */
	if (atomic_load(&pause_depth))
		present = 0;
	atomic_store(&interpreters_present_count, present);
	if (present && atomic_load(&pause_depth))
		atomic_store(&interpreters_present_count, 0);
}

/* The one that was there before, in a child. */
static struct interpreter *find_listed_interpreter(const struct interpreter_kind *kind,
						   uint64_t anchor)
{
	for (uint32_t i = 0; i < interpreter_list_count; i++) {
		if (interpreter_list[i].kind == kind && interpreter_list[i].symbols[0] == anchor)
			return &interpreter_list[i];
	}
	return NULL;
}

const char *interpreters_note_module(const struct interpreter_file *file, uint64_t start,
				     uint64_t offset)
{
	uint64_t base = start - offset - file->code_bias;
	struct interpreter *interpreter =
		find_listed_interpreter(file->kind, base + file->symbols[0].address);
	const char *refusal;

	if (!interpreter) {
		if (interpreter_list_count == INTERPRETERS_MAX || !code_table_create())
			return "an interpreter is not looked at: there is no memory, or there are "
			       "too many of them";
		interpreter = &interpreter_list[interpreter_list_count];
		*interpreter = (struct interpreter){.kind = file->kind};
		for (unsigned i = 0; i < INTERPRETER_SYMBOLS_MAX; i++) {
			interpreter->symbols[i] =
				file->symbols[i].address ? base + file->symbols[i].address : 0;
			interpreter->symbol_sizes[i] = file->symbols[i].size;
		}
		refusal = file->kind->recognize(interpreter, file->version);
		if (refusal)
			return refusal;
		/* release: who sees the count sees the entry */
		atomic_store_explicit(&interpreter_list_count, interpreter_list_count + 1,
				      memory_order_release);
	}
	interpreter->module_start = start;
	atomic_store_explicit(&interpreter->is_present, 1, memory_order_release);
	count_present_interpreters();
	return NULL;
}

void interpreters_note_module_gone(uint64_t start)
{
	for (uint32_t i = 0; i < interpreter_list_count; i++) {
		if (interpreter_list[i].module_start == start)
			atomic_store(&interpreter_list[i].is_present, 0);
	}
	count_present_interpreters();
}

void interpreters_pause(void)
{
	atomic_fetch_add(&pause_depth, 1);
	atomic_store(&interpreters_present_count, 0);
}

void interpreters_resume_mapped(void)
{
	uint64_t word;

	for (uint32_t i = 0; i < interpreter_list_count; i++) {
		if (!memory_read_checked(interpreter_list[i].symbols[0], &word, sizeof(word)))
			atomic_store(&interpreter_list[i].is_present, 0);
	}
	/* In a child that was forked inside of dlclose() the count began anew. */
	if (atomic_load(&pause_depth))
		atomic_fetch_sub(&pause_depth, 1);
	count_present_interpreters();
}

/* A pause is twice the last one, up to some seconds: what is wanted may not be there yet. */
static void search_for_wanted(struct interpreter *interpreter)
{
	if (!atomic_load_explicit(&interpreter->wanted, memory_order_acquire))
		return;
	if (interpreter->search_pause_left) {
		interpreter->search_pause_left--;
		return;
	}
	interpreter->kind->search(interpreter);
	if (interpreter->search_pause < SEARCH_PAUSE_MAX)
		interpreter->search_pause = 2 * interpreter->search_pause + 1;
	interpreter->search_pause_left = interpreter->search_pause;
}

void interpreters_run_round(void)
{
	if (!interpreters_are_present())
		return;
	for (uint32_t i = 0; i < interpreter_list_count; i++) {
		struct interpreter *interpreter = &interpreter_list[i];

		if (atomic_load(&interpreter->is_present) && interpreter->kind->search)
			search_for_wanted(interpreter);
	}
}

void interpreters_reset_for_new_run(void)
{
	python_code_reset_named();
	atomic_store(&pause_depth, 0);
	atomic_fetch_add(&code_table_run, 1);
}
