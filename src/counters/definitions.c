/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From YAML to definitions; see definitions.h.
 */
#include "counters/definitions.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reading {
	struct definitions *definitions;
	const struct definition_file *file;
	definition_told_t told;
	void *context;
	int mistakes;
};

/* What a definition has so far. */
struct reading_counter {
	const char *name, *description;
};

static uint32_t definition_hash(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return (hash ^ hash >> 16) % DEFINITION_BUCKETS;
}

/* ---- mistakes ---- */

static void tell_at(struct reading *reading, uint32_t line, uint32_t column, const char *text)
{
	reading->mistakes++;
	reading->told(reading->context, reading->file->path, line, column, text);
}

__attribute__((format(printf, 3, 4))) static void
tell(struct reading *reading, const struct yaml_node *node, const char *format, ...)
{
	char text[EXPRESSION_PROBLEM_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	tell_at(reading, node->line, node->column, text);
}

/* ---- values ---- */

/* NULL: it is not there, or not a text, which is told. */
static const struct yaml_node *text_of(struct reading *reading, const struct yaml_node *mapping,
				       const char *key)
{
	const struct yaml_node *value = yaml_find(mapping, key);

	if (value == NULL || value->kind == YAML_SCALAR)
		return value;
	tell(reading, value, "'%s' is a text, not a %s", key,
	     value->kind == YAML_MAPPING ? "mapping" : "list");
	return NULL;
}

static bool keys_are_known(struct reading *reading, const struct yaml_node *mapping,
			   const char *const *known, const char *expected)
{
	const struct yaml_node *value = mapping->first;
	bool are_known = true;

	for (; value != NULL; value = value->next) {
		int i = 0;

		while (known[i] != NULL && strcmp(known[i], value->key->text) != 0)
			i++;
		if (known[i] != NULL)
			continue;
		tell(reading, value->key, "unknown key '%.60s': %s are known", value->key->text,
		     expected);
		are_known = false;
	}
	return are_known;
}

static bool name_is_good(const char *name, size_t length)
{
	static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "_0123456789";

	return length != 0 && strspn(name, characters) == length &&
	       !(name[0] >= '0' && name[0] <= '9') && strcmp(name, "reduce") != 0 &&
	       strcmp(name, "select") != 0 && strcmp(name, "accumulate") != 0;
}

static bool check_name(struct reading *reading, const struct yaml_node *node)
{
	if (node->kind == YAML_SCALAR && name_is_good(node->text, node->length))
		return true;
	tell(reading, node,
	     "'%.60s' cannot be a counter's name: letters, digits and '_' are, and not reduce, "
	     "select or accumulate",
	     node->kind == YAML_SCALAR ? node->text : "");
	return false;
}

/* ---- one definition ---- */

static const struct definition *find_exactly(const struct definitions *definitions,
					     const char *name, const char *architecture)
{
	const struct definition *found = definitions->buckets[definition_hash(name)];

	while (found != NULL &&
	       (strcmp(found->name, name) != 0 || strcmp(found->architecture, architecture) != 0))
		found = found->next;
	return found;
}

static bool list_grow(struct definitions *definitions)
{
	uint32_t capacity = definitions->capacity != 0 ? definitions->capacity * 2 : 256;
	struct definition **grown;

	if (definitions->count < definitions->capacity)
		return true;
	grown = realloc((void *)definitions->list, capacity * sizeof(struct definition *));
	if (grown == NULL) {
		definitions->memory.failed = true;
		return false;
	}
	definitions->list = grown;
	definitions->capacity = capacity;
	return true;
}

/* `like` has everything but the architecture. */
static void add_for(struct reading *reading, const struct definition *like,
		    const struct yaml_node *where, const char *architecture, size_t length)
{
	struct definitions *definitions = reading->definitions;
	struct definition *made = memory_take(&definitions->memory, sizeof(*made));
	const struct definition *other;

	if (made == NULL || !list_grow(definitions))
		return;
	*made = *like;
	made->architecture = memory_text(&definitions->memory, architecture, length);
	if (made->architecture == NULL)
		return;
	if (length == 0 || strpbrk(made->architecture, " \t\n,") != NULL) {
		tell(reading, where, "'%.60s' is no architecture's name", made->architecture);
		return;
	}
	other = find_exactly(definitions, made->name, made->architecture);
	if (other != NULL && other->file == made->file) {
		tell(reading, where, "%s is defined for %s a second time: the first is in line %u",
		     made->name, made->architecture, other->place->line);
		return;
	}
	made->next = definitions->buckets[definition_hash(made->name)];
	definitions->buckets[definition_hash(made->name)] = made;
	definitions->list[definitions->count++] = made;
}

/* "gfx90a/gfx942" */
static void add_for_joined(struct reading *reading, const struct definition *like,
			   const struct yaml_node *architectures)
{
	const char *begin = architectures->text;

	for (;;) {
		size_t length = strcspn(begin, "/");

		add_for(reading, like, architectures, begin, length);
		if (begin[length] == '\0')
			return;
		begin += length + 1;
	}
}

static bool expression_is_good(struct reading *reading, const struct yaml_node *node)
{
	struct memory memory = {.failed = false};
	struct expression_problem problem;
	bool is_good = expression_parse(&memory, node->text, node->length, &problem) != NULL;
	uint32_t line, column;

	memory_release(&memory);
	if (!is_good) {
		yaml_place(node, problem.offset, &line, &column);
		tell_at(reading, line, column, problem.text);
	}
	return is_good;
}

/* Either block and event, or an expression. */
static bool read_meaning(struct reading *reading, const struct yaml_node *mapping,
			 struct definition *definition)
{
	int before = reading->mistakes;
	const struct yaml_node *block = text_of(reading, mapping, "block");
	const struct yaml_node *event = text_of(reading, mapping, "event");
	const struct yaml_node *expression = text_of(reading, mapping, "expression");

	if (reading->mistakes != before)
		return false;
	if (expression != NULL && (block != NULL || event != NULL)) {
		tell(reading, (block != NULL ? block : event)->key,
		     "%s has an expression and a %s: it is either derived or counted by the "
		     "hardware",
		     definition->name, block != NULL ? "block" : "event");
		return false;
	}
	if (expression != NULL) {
		definition->expression = expression->text;
		definition->place = expression;
		return expression_is_good(reading, expression);
	}
	if (block == NULL || event == NULL || block->length == 0 || event->length == 0) {
		tell(reading, mapping, "%s needs a block and an event, or an expression",
		     definition->name);
		return false;
	}
	definition->block = block->text;
	definition->event = event->text;
	definition->place = event;
	return true;
}

static bool read_definition(struct reading *reading, const struct yaml_node *mapping,
			    const struct reading_counter *counter, bool has_architectures,
			    struct definition *definition)
{
	static const char *const known[] = {"block",       "event",         "expression",
					    "description", "architectures", NULL};
	static const char *const known_old[] = {"block", "event", "expression", "description",
						NULL};
	const struct yaml_node *description;
	int before = reading->mistakes;

	*definition = (struct definition){.name = counter->name,
					  .description = counter->description,
					  .block = "",
					  .event = "",
					  .expression = "",
					  .place = mapping,
					  .file = reading->file};
	if (mapping->kind != YAML_MAPPING) {
		tell(reading, mapping, "%s needs a block and an event, or an expression",
		     counter->name);
		return false;
	}
	keys_are_known(reading, mapping, has_architectures ? known : known_old,
		       has_architectures ? "architectures, block, event, expression and description"
					 : "block, event, expression and description");
	description = text_of(reading, mapping, "description");
	if (description != NULL)
		definition->description = description->text;
	return read_meaning(reading, mapping, definition) && reading->mistakes == before;
}

/* ---- the old form ---- */

static void read_old_counter(struct reading *reading, const struct yaml_node *mapping)
{
	static const char *const known[] = {"architectures", "description", NULL};
	const struct yaml_node *architectures, *value;
	struct reading_counter counter = {mapping->key->text, ""};
	struct definition definition;

	if (!check_name(reading, mapping->key))
		return;
	if (mapping->kind != YAML_MAPPING) {
		tell(reading, mapping->key, "%s needs 'architectures'", counter.name);
		return;
	}
	if (!keys_are_known(reading, mapping, known, "architectures and description"))
		return;
	value = text_of(reading, mapping, "description");
	if (value != NULL)
		counter.description = value->text;
	architectures = yaml_find(mapping, "architectures");
	if (architectures == NULL || architectures->kind != YAML_MAPPING) {
		tell(reading, architectures != NULL ? architectures : mapping->key,
		     "%s needs 'architectures', a mapping", counter.name);
		return;
	}
	for (value = architectures->first; value != NULL; value = value->next) {
		if (read_definition(reading, value, &counter, false, &definition))
			add_for_joined(reading, &definition, value->key);
	}
}

/* ---- the newer form ---- */

static void read_new_definition(struct reading *reading, const struct yaml_node *mapping,
				const struct reading_counter *counter)
{
	const struct yaml_node *architectures = yaml_find(mapping, "architectures");
	struct definition definition;

	if (!read_definition(reading, mapping, counter, true, &definition))
		return;
	if (architectures == NULL || architectures->kind == YAML_MAPPING) {
		tell(reading, mapping, "%s needs 'architectures', a list of them", counter->name);
		return;
	}
	if (architectures->kind == YAML_SCALAR) {
		add_for_joined(reading, &definition, architectures);
		return;
	}
	for (architectures = architectures->first; architectures != NULL;
	     architectures = architectures->next) {
		if (architectures->kind == YAML_SCALAR)
			add_for_joined(reading, &definition, architectures);
		else
			tell(reading, architectures, "an architecture's name expected");
	}
}

static void read_new_counter(struct reading *reading, const struct yaml_node *mapping)
{
	static const char *const known[] = {"name", "description", "properties", "definitions",
					    NULL};
	const struct yaml_node *name = text_of(reading, mapping, "name"), *value;
	struct reading_counter counter = {"", ""};

	if (mapping->kind != YAML_MAPPING || name == NULL) {
		tell(reading, mapping, "a counter needs a 'name'");
		return;
	}
	if (!check_name(reading, name) ||
	    !keys_are_known(reading, mapping, known,
			    "name, description, properties and definitions"))
		return;
	counter.name = name->text;
	value = text_of(reading, mapping, "description");
	if (value != NULL)
		counter.description = value->text;
	value = yaml_find(mapping, "definitions");
	if (value == NULL || value->kind != YAML_SEQUENCE) {
		tell(reading, value != NULL ? value : name, "%s needs 'definitions', a list",
		     counter.name);
		return;
	}
	for (value = value->first; value != NULL; value = value->next)
		read_new_definition(reading, value, &counter);
}

static void read_new(struct reading *reading, const struct yaml_node *mapping)
{
	/* Later ones of upstream say which firmware cannot count something. */
	static const char *const known[] = {"counters-schema-version", "counters",
					    "firmware-restrictions", NULL};
	const struct yaml_node *version, *counters;

	if (mapping->kind != YAML_MAPPING) {
		tell(reading, mapping, "'counters-schema-version' and 'counters' expected");
		return;
	}
	keys_are_known(reading, mapping, known, "counters-schema-version and counters");
	version = text_of(reading, mapping, "counters-schema-version");
	if (version == NULL || strcmp(version->text, "1") != 0) {
		tell(reading, version != NULL ? version : mapping,
		     "'counters-schema-version' must be 1: no other one is known");
		return;
	}
	counters = yaml_find(mapping, "counters");
	if (counters == NULL || counters->kind != YAML_SEQUENCE) {
		tell(reading, counters != NULL ? counters : mapping, "'counters' must be a list");
		return;
	}
	for (counters = counters->first; counters != NULL; counters = counters->next)
		read_new_counter(reading, counters);
}

/* ---- files ---- */

static void read_file(struct reading *reading, const struct yaml_node *root)
{
	const struct yaml_node *value;

	if (root->kind == YAML_SCALAR && root->is_plain && root->length == 0)
		return; /* there is nothing in it */
	if (root->kind != YAML_MAPPING) {
		tell(reading, root, "counters by their names expected, or 'rocprofiler-sdk'");
		return;
	}
	for (value = root->first; value != NULL; value = value->next) {
		if (strcmp(value->key->text, "rocprofiler-sdk") == 0)
			read_new(reading, value);
		else
			read_old_counter(reading, value);
	}
}

int definitions_add(struct definitions *definitions, const char *path, const char *text,
		    size_t size, definition_told_t told, void *context)
{
	struct memory *memory = &definitions->memory;
	struct definition_file *file = memory_take(memory, sizeof(*file));
	struct reading reading = {
		.definitions = definitions, .file = file, .told = told, .context = context};
	const struct yaml_node *root;
	struct yaml_problem problem;

	if (file == NULL)
		return -1;
	file->path = memory_text(memory, path, strlen(path));
	file->number = ++definitions->files;
	if (file->path == NULL)
		return -1;
	root = yaml_parse(memory, text, size, &problem);
	if (root == NULL && !memory->failed)
		tell_at(&reading, problem.line, problem.column, problem.text);
	if (root != NULL)
		read_file(&reading, root);
	return memory->failed ? -1 : reading.mistakes;
}

void definitions_free(struct definitions *definitions)
{
	memory_release(&definitions->memory);
	free((void *)definitions->list);
	*definitions = (struct definitions){.count = 0};
}

const struct definition *definitions_find(const struct definitions *definitions, const char *name,
					  const char *const *architectures)
{
	for (; *architectures != NULL; architectures++) {
		const struct definition *found = find_exactly(definitions, name, *architectures);

		if (found != NULL)
			return found;
	}
	return NULL;
}

void definition_place(const struct definition *definition, size_t offset, uint32_t *line,
		      uint32_t *column)
{
	yaml_place(definition->place, offset, line, column);
}
