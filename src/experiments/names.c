/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h.
 */
#include "experiments/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection/names.h"
#include "common/array.h"
#include "console/message.h"
#include "planning/dependencies.h"
#include "settings/suggest.h"

enum { PLACE_ADDRESSES_MAX = 4096 };

struct causal_places_search_state {
	const struct causal_places *places;
	const char *debug_search_path;
	bool *found;             /* by place */
	bool may_run_other_code; /* the program opens libraries or starts programs, or is a script
				  */
};

static bool all_places_are_found(const struct causal_places_search_state *search)
{
	for (size_t i = 0; i < search->places->count; i++) {
		if (!search->found[i])
			return false;
	}
	return true;
}

/* Whether a program that calls this may run code that is neither its own nor its libraries'. */
static bool is_name_of_exec_or_dlopen_call(const char *name)
{
	static const char *const names[] = {"dlopen",      "execl",        "execle", "execlp",
					    "execv",       "execve",       "execvp", "execvpe",
					    "posix_spawn", "posix_spawnp", "system", "popen"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(name, names[i], length) && !strcmp(name + length, "@plt"))
			return true;
	}
	return false;
}

/* What cannot be read has nothing in it; a script runs other programs. */
static void search_module_for_places(struct causal_places_search_state *search, const char *path,
				     bool is_program)
{
	struct causal_named_place_address *list = calloc(PLACE_ADDRESSES_MAX, sizeof(*list));
	struct causal_module module;
	struct problem ignored;
	int count;

	if (!list || causal_module_open(&module, path, path, search->debug_search_path, &ignored)) {
		search->may_run_other_code |= is_program;
		free(list);
		return;
	}
	count = causal_named_places_find_addresses(search->places, &module, list,
						   PLACE_ADDRESSES_MAX);
	for (int i = 0; i < count; i++)
		search->found[list[i].place] = true;
	for (size_t i = 0; is_program && i < symbols_get_count(module.symbols); i++)
		search->may_run_other_code |=
			is_name_of_exec_or_dlopen_call(symbols_get_nth(module.symbols, i)->name);
	causal_module_close(&module);
	free(list);
}

static void search_libraries_for_places(struct causal_places_search_state *search,
					const char *program)
{
	struct problem ignored;
	char **libraries;

	if (instrument_list_dependencies(program, &libraries, &ignored))
		return;
	for (char **library = libraries; *library && !all_places_are_found(search); library++)
		search_module_for_places(search, *library, false);
	instrument_dependencies_destroy(libraries);
}

/* "foo::bar" of what the table has, malloc'ed. */
static char *copy_readable_function_name(const char *mangled)
{
	char *readable = demangle(mangled), *plain;

	if (!readable)
		return strdup(mangled);
	plain = selection_copy_plain_name(readable);
	free(readable);
	return plain;
}

/* "; did you mean 'x'?" or "". */
static void format_nearest_name_hint(const char *wanted, const char *program, char *hint,
				     size_t size)
{
	struct selection_symbol_names *names;
	struct elf_file *file;
	struct suggestion suggestion;
	char *best = NULL;

	hint[0] = '\0';
	if (elf_open(program, &file, NULL))
		return;
	if (!selection_symbol_names_load(file, NULL, &names)) {
		const struct selection_symbol_name *name;

		suggestion_init(&suggestion, wanted, strlen(wanted));
		for (size_t i = 0; (name = selection_symbol_names_get_nth(names, i)); i++) {
			char *readable = copy_readable_function_name(name->mangled);
			const char *before = suggestion.best_candidate;

			if (readable)
				suggestion_offer(&suggestion, readable, strlen(readable));
			if (suggestion.best_candidate == before) {
				free(readable);
			} else {
				free(best);
				best = readable;
			}
		}
		suggestion_format_hint(&suggestion, "", hint, size);
		selection_symbol_names_destroy(names);
	}
	free(best);
	elf_close(file);
}

static int fail_or_warn_of_missing_place(const struct causal_places_search_state *search,
					 const struct causal_named_place *place,
					 const char *program, struct problem *problem)
{
	char hint[256];

	if (place->function) {
		format_nearest_name_hint(place->function, program, hint, sizeof(hint));
		problem_set(problem, -EINVAL,
			    "--progress: no function '%.200s' in '%s' or its libraries%s",
			    place->function, program, hint);
	} else {
		problem_set(problem, -EINVAL,
			    "--progress: no code of %.200s:%u in '%s' or its libraries (only code "
			    "compiled with -g has line numbers)",
			    place->file, place->line, program);
	}
	if (!search->may_run_other_code)
		return -EINVAL;
	message_warning("%s; it may be in a library that the program opens later, or in a program "
			"that it starts",
			problem->text);
	return 0;
}

int causal_check_named_points_exist(const struct causal_places *places, const char *program,
				    const char *debug_path, struct problem *problem)
{
	struct causal_places_search_state search = {places, debug_path, NULL, false};
	int error = 0;

	if (!places->count)
		return 0;
	search.found = calloc(places->count, sizeof(*search.found));
	if (!search.found)
		return problem_set(problem, -ENOMEM, "out of memory");
	search_module_for_places(&search, program, true);
	if (!all_places_are_found(&search))
		search_libraries_for_places(&search, program);
	for (size_t i = 0; !error && i < places->count; i++) {
		if (!search.found[i])
			error = fail_or_warn_of_missing_place(&search, &places->list[i], program,
							      problem);
	}
	free(search.found);
	return error;
}
