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

struct definition_reader {
	struct counter_definitions *definitions;
	const struct definition_file *file;
	definition_problem_callback_t told;
	void *context;
	int mistake_count;
};

/* What a definition has so far. */
struct counter_being_read {
	const char *name, *description;
};

static uint32_t hash_name_to_definition_bucket(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return (hash ^ hash >> 16) % DEFINITION_BUCKET_COUNT;
}

/* ---- mistakes ---- */

static void report_mistake_at_line(struct definition_reader *reading, uint32_t line,
				   uint32_t column, const char *text)
{
	reading->mistake_count++;
	reading->told(reading->context, reading->file->path, line, column, text);
}

__attribute__((format(printf, 3, 4))) static void
report_mistake_at_node(struct definition_reader *reading, const struct yaml_node *node,
		       const char *format, ...)
{
	char text[EXPRESSION_PROBLEM_TEXT_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	report_mistake_at_line(reading, node->line, node->column, text);
}

/* ---- values ---- */

/* NULL: it is not there, or not a text, which is reported. */
static const struct yaml_node *read_text_value(struct definition_reader *reading,
					       const struct yaml_node *mapping, const char *key)
{
	const struct yaml_node *value = yaml_find_value(mapping, key);

	if (value == NULL || value->kind == YAML_SCALAR)
		return value;
	report_mistake_at_node(reading, value, "'%s' is a text, not a %s", key,
			       value->kind == YAML_MAPPING ? "mapping" : "list");
	return NULL;
}

static bool check_keys_are_known(struct definition_reader *reading, const struct yaml_node *mapping,
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
		report_mistake_at_node(reading, value->key, "unknown key '%.60s': %s are known",
				       value->key->text, expected);
		are_known = false;
	}
	return are_known;
}

static bool is_valid_counter_name(const char *name, size_t length)
{
	static const char characters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					 "_0123456789";

	return length != 0 && strspn(name, characters) == length &&
	       !(name[0] >= '0' && name[0] <= '9') && strcmp(name, "reduce") != 0 &&
	       strcmp(name, "select") != 0 && strcmp(name, "accumulate") != 0;
}

static bool check_counter_name(struct definition_reader *reading, const struct yaml_node *node)
{
	if (node->kind == YAML_SCALAR && is_valid_counter_name(node->text, node->length))
		return true;
	report_mistake_at_node(
		reading, node,
		"'%.60s' cannot be a counter's name: letters, digits and '_' are, and not reduce, "
		"select or accumulate",
		node->kind == YAML_SCALAR ? node->text : "");
	return false;
}

/* ---- one definition ---- */

static const struct counter_definition *
find_definition_of_architecture(const struct counter_definitions *definitions, const char *name,
				const char *architecture)
{
	const struct counter_definition *found =
		definitions->hash_buckets[hash_name_to_definition_bucket(name)];

	while (found != NULL &&
	       (strcmp(found->name, name) != 0 || strcmp(found->architecture, architecture) != 0))
		found = found->next;
	return found;
}

static bool reserve_one_more_definition(struct counter_definitions *definitions)
{
	uint32_t capacity = definitions->capacity != 0 ? definitions->capacity * 2 : 256;
	struct counter_definition **grown;

	if (definitions->count < definitions->capacity)
		return true;
	grown = realloc((void *)definitions->list, capacity * sizeof(struct counter_definition *));
	if (grown == NULL) {
		definitions->memory.failed = true;
		return false;
	}
	definitions->list = grown;
	definitions->capacity = capacity;
	return true;
}

/* `like` has everything but the architecture. */
static void add_definition_for_architecture(struct definition_reader *reading,
					    const struct counter_definition *like,
					    const struct yaml_node *where, const char *architecture,
					    size_t length)
{
	struct counter_definitions *definitions = reading->definitions;
	struct counter_definition *made = memory_pool_allocate(&definitions->memory, sizeof(*made));
	const struct counter_definition *other;

	if (made == NULL || !reserve_one_more_definition(definitions))
		return;
	*made = *like;
	made->architecture = memory_pool_copy_text(&definitions->memory, architecture, length);
	if (made->architecture == NULL)
		return;
	if (length == 0 || strpbrk(made->architecture, " \t\n,") != NULL) {
		report_mistake_at_node(reading, where, "'%.60s' is not the name of an architecture",
				       made->architecture);
		return;
	}
	other = find_definition_of_architecture(definitions, made->name, made->architecture);
	if (other != NULL && other->file == made->file) {
		report_mistake_at_node(
			reading, where,
			"%s is defined for %s a second time: the first is in line %u", made->name,
			made->architecture, other->place->line);
		return;
	}
	made->next = definitions->hash_buckets[hash_name_to_definition_bucket(made->name)];
	definitions->hash_buckets[hash_name_to_definition_bucket(made->name)] = made;
	definitions->list[definitions->count++] = made;
}

/* "gfx90a/gfx942" */
static void add_definition_for_architecture_list(struct definition_reader *reading,
						 const struct counter_definition *like,
						 const struct yaml_node *architectures)
{
	const char *begin = architectures->text;

	for (;;) {
		size_t length = strcspn(begin, "/");

		add_definition_for_architecture(reading, like, architectures, begin, length);
		if (begin[length] == '\0')
			return;
		begin += length + 1;
	}
}

static bool check_expression_syntax(struct definition_reader *reading, const struct yaml_node *node)
{
	struct memory_pool memory = {.failed = false};
	struct expression_problem problem;
	bool is_good = expression_parse(&memory, node->text, node->length, &problem) != NULL;
	uint32_t line, column;

	memory_pool_free_all(&memory);
	if (!is_good) {
		yaml_offset_to_line_column(node, problem.offset, &line, &column);
		report_mistake_at_line(reading, line, column, problem.text);
	}
	return is_good;
}

/* Either block and event, or an expression. */
static bool read_event_or_expression(struct definition_reader *reading,
				     const struct yaml_node *mapping,
				     struct counter_definition *definition)
{
	int before = reading->mistake_count;
	const struct yaml_node *block = read_text_value(reading, mapping, "block");
	const struct yaml_node *event = read_text_value(reading, mapping, "event");
	const struct yaml_node *expression = read_text_value(reading, mapping, "expression");

	if (reading->mistake_count != before)
		return false;
	if (expression != NULL && (block != NULL || event != NULL)) {
		report_mistake_at_node(
			reading, (block != NULL ? block : event)->key,
			"%s has an expression and a %s: it is either derived or counted by the "
			"hardware",
			definition->name, block != NULL ? "block" : "event");
		return false;
	}
	if (expression != NULL) {
		definition->expression = expression->text;
		definition->place = expression;
		return check_expression_syntax(reading, expression);
	}
	if (block == NULL || event == NULL || block->length == 0 || event->length == 0) {
		report_mistake_at_node(reading, mapping,
				       "%s needs a block and an event, or an expression",
				       definition->name);
		return false;
	}
	definition->block = block->text;
	definition->event = event->text;
	definition->place = event;
	return true;
}

static bool read_definition(struct definition_reader *reading, const struct yaml_node *mapping,
			    const struct counter_being_read *counter, bool has_architectures,
			    struct counter_definition *definition)
{
	static const char *const known[] = {"block",       "event",         "expression",
					    "description", "architectures", NULL};
	static const char *const known_old[] = {"block", "event", "expression", "description",
						NULL};
	const struct yaml_node *description;
	int before = reading->mistake_count;

	*definition = (struct counter_definition){.name = counter->name,
						  .description = counter->description,
						  .block = "",
						  .event = "",
						  .expression = "",
						  .place = mapping,
						  .file = reading->file};
	if (mapping->kind != YAML_MAPPING) {
		report_mistake_at_node(reading, mapping,
				       "%s needs a block and an event, or an expression",
				       counter->name);
		return false;
	}
	check_keys_are_known(reading, mapping, has_architectures ? known : known_old,
			     has_architectures
				     ? "architectures, block, event, expression and description"
				     : "block, event, expression and description");
	description = read_text_value(reading, mapping, "description");
	if (description != NULL)
		definition->description = description->text;
	return read_event_or_expression(reading, mapping, definition) &&
	       reading->mistake_count == before;
}

/* ---- the old form ---- */

static void read_old_schema_counter(struct definition_reader *reading,
				    const struct yaml_node *mapping)
{
	static const char *const known[] = {"architectures", "description", NULL};
	const struct yaml_node *architectures, *value;
	struct counter_being_read counter = {mapping->key->text, ""};
	struct counter_definition definition;

	if (!check_counter_name(reading, mapping->key))
		return;
	if (mapping->kind != YAML_MAPPING) {
		report_mistake_at_node(reading, mapping->key, "%s needs 'architectures'",
				       counter.name);
		return;
	}
	if (!check_keys_are_known(reading, mapping, known, "architectures and description"))
		return;
	value = read_text_value(reading, mapping, "description");
	if (value != NULL)
		counter.description = value->text;
	architectures = yaml_find_value(mapping, "architectures");
	if (architectures == NULL || architectures->kind != YAML_MAPPING) {
		report_mistake_at_node(reading,
				       architectures != NULL ? architectures : mapping->key,
				       "%s needs 'architectures', a mapping", counter.name);
		return;
	}
	for (value = architectures->first; value != NULL; value = value->next) {
		if (read_definition(reading, value, &counter, false, &definition))
			add_definition_for_architecture_list(reading, &definition, value->key);
	}
}

/* ---- the newer form ---- */

static void read_new_schema_definition(struct definition_reader *reading,
				       const struct yaml_node *mapping,
				       const struct counter_being_read *counter)
{
	const struct yaml_node *architectures = yaml_find_value(mapping, "architectures");
	struct counter_definition definition;

	if (!read_definition(reading, mapping, counter, true, &definition))
		return;
	if (architectures == NULL || architectures->kind == YAML_MAPPING) {
		report_mistake_at_node(reading, mapping, "%s needs 'architectures', a list of them",
				       counter->name);
		return;
	}
	if (architectures->kind == YAML_SCALAR) {
		add_definition_for_architecture_list(reading, &definition, architectures);
		return;
	}
	for (architectures = architectures->first; architectures != NULL;
	     architectures = architectures->next) {
		if (architectures->kind == YAML_SCALAR)
			add_definition_for_architecture_list(reading, &definition, architectures);
		else
			report_mistake_at_node(reading, architectures,
					       "an architecture's name expected");
	}
}

static void read_new_schema_counter(struct definition_reader *reading,
				    const struct yaml_node *mapping)
{
	static const char *const known[] = {"name", "description", "properties", "definitions",
					    NULL};
	const struct yaml_node *name = read_text_value(reading, mapping, "name"), *value;
	struct counter_being_read counter = {"", ""};

	if (mapping->kind != YAML_MAPPING || name == NULL) {
		report_mistake_at_node(reading, mapping, "a counter needs a 'name'");
		return;
	}
	if (!check_counter_name(reading, name) ||
	    !check_keys_are_known(reading, mapping, known,
				  "name, description, properties and definitions"))
		return;
	counter.name = name->text;
	value = read_text_value(reading, mapping, "description");
	if (value != NULL)
		counter.description = value->text;
	value = yaml_find_value(mapping, "definitions");
	if (value == NULL || value->kind != YAML_SEQUENCE) {
		report_mistake_at_node(reading, value != NULL ? value : name,
				       "%s needs 'definitions', a list", counter.name);
		return;
	}
	for (value = value->first; value != NULL; value = value->next)
		read_new_schema_definition(reading, value, &counter);
}

static void read_new_schema_mapping(struct definition_reader *reading,
				    const struct yaml_node *mapping)
{
	/* Later ones of upstream say which firmware cannot count something. */
	static const char *const known[] = {"counters-schema-version", "counters",
					    "firmware-restrictions", NULL};
	const struct yaml_node *version, *counters;

	if (mapping->kind != YAML_MAPPING) {
		report_mistake_at_node(reading, mapping,
				       "'counters-schema-version' and 'counters' expected");
		return;
	}
	check_keys_are_known(reading, mapping, known, "counters-schema-version and counters");
	version = read_text_value(reading, mapping, "counters-schema-version");
	if (version == NULL || strcmp(version->text, "1") != 0) {
		report_mistake_at_node(
			reading, version != NULL ? version : mapping,
			"'counters-schema-version' must be 1: no other one is known");
		return;
	}
	counters = yaml_find_value(mapping, "counters");
	if (counters == NULL || counters->kind != YAML_SEQUENCE) {
		report_mistake_at_node(reading, counters != NULL ? counters : mapping,
				       "'counters' must be a list");
		return;
	}
	for (counters = counters->first; counters != NULL; counters = counters->next)
		read_new_schema_counter(reading, counters);
}

/* ---- files ---- */

static void read_root_node(struct definition_reader *reading, const struct yaml_node *root)
{
	const struct yaml_node *value;

	if (root->kind == YAML_SCALAR && root->is_plain && root->length == 0)
		return; /* there is nothing in it */
	if (root->kind != YAML_MAPPING) {
		report_mistake_at_node(reading, root,
				       "counters by their names expected, or 'rocprofiler-sdk'");
		return;
	}
	for (value = root->first; value != NULL; value = value->next) {
		if (strcmp(value->key->text, "rocprofiler-sdk") == 0)
			read_new_schema_mapping(reading, value);
		else
			read_old_schema_counter(reading, value);
	}
}

int definitions_add_file_text(struct counter_definitions *definitions, const char *path,
			      const char *text, size_t size, definition_problem_callback_t told,
			      void *context)
{
	struct memory_pool *memory = &definitions->memory;
	struct definition_file *file = memory_pool_allocate(memory, sizeof(*file));
	struct definition_reader reading = {
		.definitions = definitions, .file = file, .told = told, .context = context};
	const struct yaml_node *root;
	struct yaml_problem problem;

	if (file == NULL)
		return -1;
	file->path = memory_pool_copy_text(memory, path, strlen(path));
	file->number = ++definitions->files;
	if (file->path == NULL)
		return -1;
	root = yaml_parse(memory, text, size, &problem);
	if (root == NULL && !memory->failed)
		report_mistake_at_line(&reading, problem.line, problem.column, problem.text);
	if (root != NULL)
		read_root_node(&reading, root);
	return memory->failed ? -1 : reading.mistake_count;
}

void definitions_free(struct counter_definitions *definitions)
{
	memory_pool_free_all(&definitions->memory);
	free((void *)definitions->list);
	*definitions = (struct counter_definitions){.count = 0};
}

const struct counter_definition *definitions_find(const struct counter_definitions *definitions,
						  const char *name,
						  const char *const *architectures)
{
	for (; *architectures != NULL; architectures++) {
		const struct counter_definition *found =
			find_definition_of_architecture(definitions, name, *architectures);

		if (found != NULL)
			return found;
	}
	return NULL;
}

void definition_offset_to_line_column(const struct counter_definition *definition, size_t offset,
				      uint32_t *line, uint32_t *column)
{
	yaml_offset_to_line_column(definition->place, offset, line, column);
}
