/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See list.h. An entry is kept as the text "module|name", where module is the last part
 * of its path, or empty for lists that name none, and name is "@address" for functions without one.
 */
#include "binary/selection/list.h"
#include "common/foreign_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct function_list_entry {
	char *text;
	size_t function; /* on the list, which may have several names */
};

struct selection_list {
	struct function_list_entry *entries; /* sorted by text */
	size_t count, capacity;
	size_t functions;
	_Atomic bool *found; /* by function; modules are looked through by several threads */
};

static const char *get_path_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* A name of the function that is being read. */
static int add_list_entry(struct selection_list *list, const char *module, const char *name)
{
	struct function_list_entry *entry;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 256;
		struct function_list_entry *entries =
			reallocarray(list->entries, capacity, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		list->entries = entries;
		list->capacity = capacity;
	}
	entry = &list->entries[list->count];
	if (asprintf(&entry->text, "%s|%s", get_path_base_name(module), name) < 0)
		return -ENOMEM;
	entry->function = list->functions;
	list->count++;
	return 0;
}

/* One function of a JSON list: all names that it has, or its address. */
static int add_function_from_json_list(struct selection_list *list, const char *module,
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
			error = add_list_entry(list, module, name);
	}
	if (error || has_symbol || !json_is_integer(address))
		return error;
	snprintf(text, sizeof(text), "@%" JSON_INTEGER_FORMAT, json_integer_value(address));
	return add_list_entry(list, module, text);
}

static int add_functions_of_json_modules(struct selection_list *list, const json_t *modules)
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
				error = add_function_from_json_list(list, path, function);
			list->functions++;
		}
	}
	return error;
}

static int read_json_list(struct selection_list *list, FILE *file, const char *path,
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
	error = add_functions_of_json_modules(list, modules);
	json_decref(root);
	return error ? problem_set(problem, error, "out of memory") : 0;
}

static int read_text_list(struct selection_list *list, FILE *file, struct problem *problem)
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
			error = add_list_entry(list, "", name);
			list->functions++;
		}
	}
	free(line);
	return error ? problem_set(problem, error, "out of memory") : 0;
}

static int read_list_file(struct selection_list *list, const char *path, struct problem *problem)
{
	FILE *file = foreign_open_user_named_stream(path);
	int first, error;

	if (!file)
		return problem_set(problem, -errno, "cannot read the list '%s': %s", path,
				   foreign_error_to_text(errno));
	do
		first = fgetc(file);
	while (first == ' ' || first == '\t' || first == '\n' || first == '\r');
	rewind(file);
	error = first == '{' ? read_json_list(list, file, path, problem)
			     : read_text_list(list, file, problem);
	if (!error && ferror(file))
		error = problem_set(problem, -EIO, "cannot read the list '%s'", path);
	fclose(file);
	return error;
}

static int compare_list_entries(const void *left, const void *right)
{
	return strcmp(((const struct function_list_entry *)left)->text,
		      ((const struct function_list_entry *)right)->text);
}

int selection_list_read_files(const char *files, struct selection_list **ret,
			      struct problem *problem)
{
	struct selection_list *list = calloc(1, sizeof(*list));
	char *copy = strdup(files), *rest = copy;
	int error = list && copy ? 0 : problem_set(problem, -ENOMEM, "out of memory");

	for (char *path; !error && (path = strsep(&rest, ":"));) {
		if (*path)
			error = read_list_file(list, path, problem);
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
		qsort(list->entries, list->count, sizeof(*list->entries), compare_list_entries);
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

static void mark_entry_found(const struct selection_list *list, size_t at)
{
	atomic_store_explicit(&list->found[list->entries[at].function], true, memory_order_relaxed);
}

/* A name may be on the list several times. */
static void mark_equal_entries_found(const struct selection_list *list, size_t at)
{
	const struct function_list_entry *entries = list->entries;

	for (size_t i = at; i && !compare_list_entries(&entries[i - 1], &entries[at]); i--)
		mark_entry_found(list, i - 1);
	for (size_t i = at; i < list->count && !compare_list_entries(&entries[i], &entries[at]);
	     i++)
		mark_entry_found(list, i);
}

static bool find_and_mark_list_entry(const struct selection_list *list, const char *module,
				     const char *name)
{
	const struct function_list_entry *entry;
	struct function_list_entry wanted;

	if (!list->count || asprintf(&wanted.text, "%s|%s", module, name) < 0)
		return false;
	entry = bsearch(&wanted, list->entries, list->count, sizeof(*list->entries),
			compare_list_entries);
	free(wanted.text);
	if (entry)
		mark_equal_entries_found(list, (size_t)(entry - list->entries));
	return entry != NULL;
}

bool selection_list_find_and_mark_name(const struct selection_list *list, const char *module,
				       const char *name)
{
	bool here = find_and_mark_list_entry(list, get_path_base_name(module), name);

	return find_and_mark_list_entry(list, "", name) || here;
}

bool selection_list_find_and_mark_address(const struct selection_list *list, const char *module,
					  uint64_t vaddr)
{
	char text[32];

	snprintf(text, sizeof(text), "@%" PRIu64, vaddr);
	return find_and_mark_list_entry(list, get_path_base_name(module), text);
}

size_t selection_list_count_missing(const struct selection_list *list, const char **ret_first,
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
