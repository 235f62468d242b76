/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_names.h.
 */
#include "cmd/causal_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "binary/selection_names.h"
#include "cmd/instrument_dependencies.h"
#include "cmd/message.h"
#include "cmd/nearest.h"

enum { NAMES_ADDRESSES = 4096 };

struct search {
	const struct causal_places *places;
	const char *debug_path;
	bool *found;       /* by place */
	bool opens_others; /* the program opens libraries or starts programs, or is a script */
};

static bool search_is_done(const struct search *search)
{
	for (size_t i = 0; i < search->places->count; i++) {
		if (!search->found[i])
			return false;
	}
	return true;
}

/* Whether a program that calls this may run code that is neither its own nor its libraries'. */
static bool search_leads_elsewhere(const char *name)
{
	static const char *const names[] = {"dlopen",      "execl",        "execle", "execlp",
					    "execv",       "execve",       "execvp", "execvpe",
					    "posix_spawn", "posix_spawnp", "system", "popen"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(name, names[i], length) && !strcmp(name + length, "@plt"))
			return true;
	}
	return false;
}

/* What cannot be read has nothing in it; a script runs other programs. */
static void search_module(struct search *search, const char *path, bool is_program)
{
	struct causal_place_address *list = calloc(NAMES_ADDRESSES, sizeof(*list));
	struct causal_module module;
	struct problem ignored;
	int count;

	if (!list || causal_module_open(&module, path, path, search->debug_path, &ignored)) {
		search->opens_others |= is_program;
		free(list);
		return;
	}
	count = causal_places_find(search->places, &module, list, NAMES_ADDRESSES);
	for (int i = 0; i < count; i++)
		search->found[list[i].place] = true;
	for (size_t i = 0; is_program && i < symbols_count(module.symbols); i++)
		search->opens_others |= search_leads_elsewhere(symbols_at(module.symbols, i)->name);
	causal_module_close(&module);
	free(list);
}

static void search_libraries(struct search *search, const char *program)
{
	struct problem ignored;
	char **libraries;

	if (instrument_dependencies(program, &libraries, &ignored))
		return;
	for (char **library = libraries; *library && !search_is_done(search); library++)
		search_module(search, *library, false);
	instrument_dependencies_destroy(libraries);
}

/* "foo::bar" of what the table has, malloc'ed. */
static char *search_readable(const char *mangled)
{
	char *readable = demangle(mangled), *plain;

	if (!readable)
		return strdup(mangled);
	plain = selection_plain_name(readable);
	free(readable);
	return plain;
}

/* "; did you mean 'x'?" or "". */
static void search_nearest(const char *wanted, const char *program, char *hint, size_t size)
{
	struct selection_names *names;
	struct elf_file *file;
	struct nearest nearest;
	char *best = NULL;

	hint[0] = '\0';
	if (elf_open(program, &file, NULL))
		return;
	if (!selection_names_load(file, NULL, &names)) {
		const struct selection_name *name;

		nearest_init(&nearest, wanted, strlen(wanted));
		for (size_t i = 0; (name = selection_names_nth(names, i)); i++) {
			char *readable = search_readable(name->mangled);
			const char *before = nearest.best;

			if (readable)
				nearest_offer(&nearest, readable, strlen(readable));
			if (nearest.best == before) {
				free(readable);
			} else {
				free(best);
				best = readable;
			}
		}
		nearest_hint(&nearest, "", hint, size);
		selection_names_destroy(names);
	}
	free(best);
	elf_close(file);
}

static int search_missing(const struct search *search, const struct causal_place *place,
			  const char *program, struct problem *problem)
{
	char hint[256];

	if (place->function) {
		search_nearest(place->function, program, hint, sizeof(hint));
		problem_set(problem, -EINVAL,
			    "--progress: no function '%.200s' in '%s' or its libraries%s",
			    place->function, program, hint);
	} else {
		problem_set(problem, -EINVAL,
			    "--progress: no code of %.200s:%u in '%s' or its libraries (lines are "
			    "known of what is compiled with -g)",
			    place->file, place->line, program);
	}
	if (!search->opens_others)
		return -EINVAL;
	message_warning("%s; it may be in one that the program opens later, or in a program "
			"that it starts",
			problem->text);
	return 0;
}

int causal_names_check(const struct causal_places *places, const char *program,
		       const char *debug_path, struct problem *problem)
{
	struct search search = {places, debug_path, NULL, false};
	int error = 0;

	if (!places->count)
		return 0;
	search.found = calloc(places->count, sizeof(*search.found));
	if (!search.found)
		return problem_set(problem, -ENOMEM, "out of memory");
	search_module(&search, program, true);
	if (!search_is_done(&search))
		search_libraries(&search, program);
	for (size_t i = 0; !error && i < places->count; i++) {
		if (!search.found[i])
			error = search_missing(&search, &places->list[i], program, problem);
	}
	free(search.found);
	return error;
}
