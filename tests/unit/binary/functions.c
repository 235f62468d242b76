/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are found, and which are left alone for which reason: those of
 * sample_functions.S, whose names say so, with symbols and without.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../assert_at.h"
#include "binary/functions/private.h"
#include "binary/plan/plan.h"
#include "common/array.h"

struct sample {
	struct elf_file *file;
	struct symbol_table *symbols;
	struct functions *functions;
	struct plan plan;
};

static void open_sample(const char *name, struct sample *ret)
{
	const struct plan_options options = {0};
	struct problem problem;
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", getenv("FUNCTION_SAMPLES"), name);
	assert_int_equal(elf_open(path, &ret->file, &problem), 0);
	assert_int_equal(symbols_create(&ret->symbols), 0);
	assert_int_equal(symbols_add_file(ret->symbols, ret->file), 0);
	assert_int_equal(symbols_sort_and_flatten(ret->symbols), 0);
	assert_int_equal(functions_find_in_file(ret->file, ret->symbols, &ret->functions, &problem),
			 0);
	assert_int_equal(plan_build(ret->file, ret->functions, &options, &ret->plan, &problem), 0);
}

static void close_sample(struct sample *sample)
{
	plan_close(&sample->plan);
	functions_destroy(sample->functions);
	symbols_destroy(sample->symbols);
	elf_close(sample->file);
}

/* Does the name begin with the reason's word? */
static bool says(const char *name, enum plan_reason reason)
{
	const char *word = plan_reason_to_word(reason);

	for (; *word; word++, name++) {
		if (*name != (*word == '-' ? '_' : *word))
			return false;
	}
	return *name == '_';
}

static void check_names(const struct plan *plan, const struct symbol_table *symbols, bool aliases)
{
	size_t checked = 0;

	for (size_t i = 0; i < plan->header->functions.count; i++) {
		const struct plan_function *function = &plan_get_functions(plan)[i];
		const struct symbol *symbol = symbols_find_at_address(symbols, function->vaddr);
		if (!symbol || symbol->address != function->vaddr)
			continue;
		/* What names alone tell is not known without them. */
		if (!aliases && (!strncmp(symbol->name, "unwinder", 8) ||
				 !strncmp(symbol->name, "overlaps", 8)))
			continue;
		if (!says(symbol->name, function->reason))
			fail_msg("%s: %s", symbol->name, plan_reason_to_word(function->reason));
		checked++;
	}
	assert_in_range(checked, 25, 100);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		enum plan_reason reason;
	} names[] = {
		{"vfork", PLAN_RETURNS_TWICE},
		{"vforks", PLAN_PATCHABLE},
		{"_Unwind_Resume", PLAN_UNWINDER},
		{"Builtins_ArrayMap", PLAN_READS_RETURN},
		{"_ZN2v88internal20Runtime_ThrowIfNotOkEiPmPNS0_7IsolateE", PLAN_PATCHABLE},
		{"_ZN2v88internal23RegExpMacroAssemblerX6420CheckStackGuardStateEPmmm",
		 PLAN_READS_RETURN},
		{"_ZN2v88internal23RegExpMacroAssemblerX6424CallCheckStackGuardStateEv",
		 PLAN_PATCHABLE},
		{"_ZN4work20CheckStackGuardStateEPm", PLAN_PATCHABLE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal_at(i, finder_get_plan_reason_by_name(names[i].name),
				    names[i].reason);
	assert_true(finder_name_is_called_by_v8(
		"_ZN2v88internal20Runtime_ThrowIfNotOkEiPmPNS0_7IsolateE"));
	assert_true(finder_name_is_called_by_v8(
		"_ZN4node2fs5FStatERKN2v820FunctionCallbackInfoINS1_5ValueEEE"));
	assert_false(finder_name_is_called_by_v8("_ZN4node2fs5FStatEPN2v87IsolateE"));
	assert_false(finder_name_is_called_by_v8("Runtime_PNS0_7IsolateE"));
}

static void test_reasons(void **state)
{
	struct sample sample;

	(void)state;
	open_sample("functions.so", &sample);
	check_names(&sample.plan, sample.symbols, true);
	close_sample(&sample);
}

/* The names of the one for the other. Dynamic symbols remain; all of these are global, but for the
 * few that are there to be found without. */
static void test_stripped(void **state)
{
	struct sample full, stripped;

	(void)state;
	open_sample("functions.so", &full);
	open_sample("stripped.so", &stripped);
	check_names(&stripped.plan, full.symbols, true);
	close_sample(&stripped);
	close_sample(&full);
}

static const struct function *named(const struct sample *sample, const char *name)
{
	for (size_t i = 0; i < sample->functions->count; i++) {
		const struct function *function = &sample->functions->list[i];
		if (function->name && !strcmp(function->name, name))
			return function;
	}
	fail_msg("no %s", name);
	return NULL;
}

static void test_ranges(void **state)
{
	struct sample sample;
	const struct function *function;
	uint64_t last = 0;
	size_t left;

	(void)state;
	open_sample("functions.so", &sample);
	for (size_t i = 0; i < sample.functions->count; i++) {
		function = &sample.functions->list[i];
		assert_true(i == 0 || function->vaddr > last);
		assert_true(function->space >= function->size);
		assert_non_null(
			functions_get_code_bytes_at(sample.functions, function->vaddr, &left));
		assert_true(left >= function->size);
		assert_true(functions_address_is_control_target(sample.functions, function->vaddr));
		last = function->vaddr;
	}
	function = named(&sample, "patchable_plain");
	assert_int_equal(function->size, 8);
	assert_int_equal(function->instruction_count, 5);
	assert_int_equal(function->space, 16);
	assert_ptr_equal(functions_find_at_address(sample.functions, function->vaddr + 7),
			 function);
	assert_null(functions_find_at_address(sample.functions, function->vaddr + 8));
	assert_null(functions_find_at_address(sample.functions, 0));
	assert_false(functions_address_is_control_target(sample.functions, function->vaddr + 1));
	assert_false(functions_address_is_control_target(sample.functions, UINT64_MAX));
	function = named(&sample, "target_second_instruction");
	assert_true(functions_address_is_control_target(sample.functions, function->vaddr + 2));
	assert_true(function->flags & PLAN_FUNCTION_LOOPS);
	assert_int_equal(function->loops, 1);
	close_sample(&sample);
}

static void test_flags(void **state)
{
	struct sample sample;

	(void)state;
	open_sample("functions.so", &sample);
	assert_true(named(&sample, "patchable_jumper")->flags & PLAN_FUNCTION_TAIL);
	assert_true(named(&sample, "unrelocatable_early_call")->flags & PLAN_FUNCTION_INDIRECT);
	assert_true(named(&sample, "no_return_address_signal")->flags & PLAN_FUNCTION_RETURNS_NOT);
	assert_true(named(&sample, "patchable_tail")->flags & PLAN_FUNCTION_LOCAL);
	assert_false(named(&sample, "patchable_plain")->flags &
		     (PLAN_FUNCTION_LOCAL | PLAN_FUNCTION_NO_SYMBOL | PLAN_FUNCTION_TAIL |
		      PLAN_FUNCTION_RETURNS_NOT | PLAN_FUNCTION_INDIRECT | PLAN_FUNCTION_LOOPS));
	close_sample(&sample);
}

static void test_not_ours(void **state)
{
	static const char text[] = "#!/bin/sh\n";
	struct functions *functions;
	struct problem problem = {""};
	struct elf_file *file;
	Elf64_Ehdr header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_DYN,
			     .e_machine = EM_AARCH64,
			     .e_version = EV_CURRENT,
			     .e_ehsize = sizeof(header)};

	(void)state;
	assert_true(elf_open_memory(text, sizeof(text), "script", &file, &problem) < 0);
	if (elf_open_memory(&header, sizeof(header), "foreign", &file, &problem) == 0) {
		assert_int_equal(functions_find_in_file(file, NULL, &functions, &problem),
				 -ENOTSUP);
		assert_non_null(strstr(problem.text, "foreign"));
		elf_close(file);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),    cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_stripped), cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_flags),    cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
