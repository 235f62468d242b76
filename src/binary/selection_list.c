/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See selection_list.h. An entry is kept as the text "module|name", where module is the last part
 * of its path, or empty for lists that name none, and name is "@address" for functions without one.
 */
#include "binary/selection_list.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct list_entry {
	char *text;
	size_t function; /* on the list, which may have several names */
};

struct selection_list {
	struct list_entry *entries; /* sorted by text */
	size_t count, capacity;
	size_t functions;
	_Atomic bool *found; /* by function; modules are looked through by several threads */
};

static const char *list_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A name of the function that is being read. */
static int list_add(struct selection_list *list, const char *module, const char *name)
{
	struct list_entry *entry;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 256;
		struct list_entry *entries =
			reallocarray(list->entries, capacity, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		list->entries = entries;
		list->capacity = capacity;
	}
	entry = &list->entries[list->count];
	if (asprintf(&entry->text, "%s|%s", list_base(module), name) < 0)
		return -ENOMEM;
	entry->function = list->functions;
	list->count++;
	return 0;
}

/* One function of a JSON list: all names that it has, or its address. */
static int list_add_function(struct selection_list *list, const char *module,
			     const json_t *function)
{
	static const char *const names[] = {"mangled", "function_signature"};
	const json_t *address = json_object_get(function, "start_address");
	bool has_symbol = json_is_string(json_object_get(function, "mangled"));
	char text[32];
	int error = 0;

	for (unsigned i = 0; has_symbol && !error && i < 2; i++) {
		const char *name = json_string_value(json_object_get(function, names[i]));

		if (name && *name)
			error = list_add(list, module, name);
	}
	if (error || has_symbol || !json_is_integer(address))
		return error;
	snprintf(text, sizeof(text), "@%" JSON_INTEGER_FORMAT, json_integer_value(address));
	return list_add(list, module, text);
}

static int list_add_modules(struct selection_list *list, const json_t *modules)
{
	const json_t *module, *function;
	size_t module_index, index;
	int error = 0;

	json_array_foreach(modules, module_index, module)
	{
		const char *path = json_string_value(json_object_get(module, "module"));

		json_array_foreach(json_object_get(module, "functions"), index, function)
		{
			if (!error && path)
				error = list_add_function(list, path, function);
			list->functions++;
		}
	}
	return error;
}

static int list_read_json(struct selection_list *list, FILE *file, const char *path,
			  struct problem *problem)
{
	json_error_t wrong;
	json_t *root = json_loadf(file, 0, &wrong);
	const json_t *modules = json_object_get(root, "modules");
	int error;

	if (!root)
		return problem_set(problem, -EINVAL, "%s:%d:%d: %s", path, wrong.line, wrong.column,
				   wrong.text);
	if (!json_is_array(modules)) {
		json_decref(root);
		return problem_set(problem, -EINVAL,
				   "%s: no list of functions: \"modules\" is missing (such as "
				   "instrumentation/instrumented.json of a result)",
				   path);
	}
	error = list_add_modules(list, modules);
	json_decref(root);
	return error ? problem_set(problem, error, "out of memory") : 0;
}

static int list_read_text(struct selection_list *list, FILE *file, struct problem *problem)
{
	char *line = NULL;
	size_t size = 0;
	int error = 0;

	while (!error && getline(&line, &size, file) >= 0) {
		char *name = line + strspn(line, " \t"), *end;

		name[strcspn(name, "#\r\n")] = '\0';
		end = name + strlen(name);
		while (end > name && (end[-1] == ' ' || end[-1] == '\t'))
			*--end = '\0';
		if (*name) {
			error = list_add(list, "", name);
			list->functions++;
		}
	}
	free(line);
	return error ? problem_set(problem, error, "out of memory") : 0;
}

static int list_read_file(struct selection_list *list, const char *path, struct problem *problem)
{
	FILE *file = fopen(path, "re");
	int first, error;

	if (!file)
		return problem_set(problem, -errno, "cannot read the list '%s': %s", path,
				   strerror(errno));
	do
		first = fgetc(file);
	while (first == ' ' || first == '\t' || first == '\n' || first == '\r');
	rewind(file);
	error = first == '{' ? list_read_json(list, file, path, problem)
			     : list_read_text(list, file, problem);
	if (!error && ferror(file))
		error = problem_set(problem, -EIO, "cannot read the list '%s'", path);
	fclose(file);
	return error;
}

static int list_order(const void *left, const void *right)
{
	return strcmp(((const struct list_entry *)left)->text,
		      ((const struct list_entry *)right)->text);
}

int selection_list_read(const char *files, struct selection_list **ret, struct problem *problem)
{
	struct selection_list *list = calloc(1, sizeof(*list));
	char *copy = strdup(files), *rest = copy;
	int error = list && copy ? 0 : problem_set(problem, -ENOMEM, "out of memory");

	for (char *path; !error && (path = strsep(&rest, ":"));) {
		if (*path)
			error = list_read_file(list, path, problem);
	}
	free(copy);
	if (!error) {
		list->found = calloc(list->functions + 1, sizeof(*list->found));
		if (!list->found)
			error = problem_set(problem, -ENOMEM, "out of memory");
	}
	if (error) {
		selection_list_destroy(list);
		return error;
	}
	if (list->count)
		qsort(list->entries, list->count, sizeof(*list->entries), list_order);
	*ret = list;
	return 0;
}

void selection_list_destroy(struct selection_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->entries[i].text);
	free(list->entries);
	free(list->found);
	free(list);
}

static void list_note(const struct selection_list *list, size_t at)
{
	atomic_store_explicit(&list->found[list->entries[at].function], true, memory_order_relaxed);
}

/* A name may be on the list several times. */
static void list_note_all(const struct selection_list *list, size_t at)
{
	const struct list_entry *entries = list->entries;

	for (size_t i = at; i && !list_order(&entries[i - 1], &entries[at]); i--)
		list_note(list, i - 1);
	for (size_t i = at; i < list->count && !list_order(&entries[i], &entries[at]); i++)
		list_note(list, i);
}

static bool list_has(const struct selection_list *list, const char *module, const char *name)
{
	const struct list_entry *entry;
	struct list_entry wanted;

	if (!list->count || asprintf(&wanted.text, "%s|%s", module, name) < 0)
		return false;
	entry = bsearch(&wanted, list->entries, list->count, sizeof(*list->entries), list_order);
	free(wanted.text);
	if (entry)
		list_note_all(list, (size_t)(entry - list->entries));
	return entry != NULL;
}

bool selection_list_has_name(const struct selection_list *list, const char *module,
			     const char *name)
{
	bool here = list_has(list, list_base(module), name);

	return list_has(list, "", name) || here;
}

bool selection_list_has_address(const struct selection_list *list, const char *module,
				uint64_t vaddr)
{
	char text[32];

	snprintf(text, sizeof(text), "@%" PRIu64, vaddr);
	return list_has(list, list_base(module), text);
}

size_t selection_list_misses(const struct selection_list *list, const char **ret_first,
			     size_t *ret_count)
{
	size_t misses = 0;

	*ret_first = NULL;
	*ret_count = list->functions;
	for (size_t i = 0; i < list->functions; i++)
		misses += !list->found[i];
	for (size_t i = 0; misses && !*ret_first && i < list->count; i++) {
		if (!list->found[list->entries[i].function])
			*ret_first = list->entries[i].text;
	}
	return misses;
}
