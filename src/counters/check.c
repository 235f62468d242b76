/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A file of definitions by itself, without an agent: do the names in expressions stand for
 * something, on each architecture? How many dimensions there are shows only on a device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "counters/definitions.h"
#include "counters/properties.h"

struct definition_check_state {
	const struct definition_file *file;
	definition_problem_callback_t told;
	void *context;
	int mistake_count;
};

/* NVIDIA's are listed by the driver's libraries alone. */
static bool may_be_nvidia_counter_name(const char *name)
{
	return strstr(name, "__") != NULL;
}

static void report_counter_problem(void *context, const struct counter *counter,
				   const struct expression_problem *problem)
{
	struct definition_check_state *checking = context;
	uint32_t line, column;

	if (counter->definition == NULL || counter->definition->file != checking->file)
		return;
	definition_offset_to_line_column(counter->definition, problem->offset, &line, &column);
	checking->mistake_count++;
	checking->told(checking->context, checking->file->path, line, column, problem->text);
}

static bool add_definition_to_catalogue(struct counter_catalogue *catalogue,
					const struct counter_definition *definition)
{
	struct counter *counter = catalogue_add_blank_counter(catalogue, definition->name);

	if (counter == NULL)
		return false;
	counter->kind = definition->expression[0] != '\0' ? COUNTER_DERIVED : COUNTER_EVENT;
	counter->block = definition->block;
	counter->event = definition->event;
	counter->expression_text = definition->expression;
	counter->definition = definition;
	return true;
}

static bool add_event_counter_named_with_prefix(struct counter_catalogue *catalogue,
						const char *prefix, const char *name)
{
	char text[256];
	struct counter *counter;

	snprintf(text, sizeof(text), "%s%s", prefix, name);
	counter = catalogue_add_blank_counter(catalogue, text);
	if (counter != NULL)
		counter->kind = COUNTER_EVENT;
	return counter != NULL;
}

/* What devices list by themselves: the host the events of kymo's definitions, for the process and
 * for whole CPUs; OpenCL devices times of their own, those that are the host's CPUs its events. */
static bool add_device_listed_counters(struct counter_catalogue *catalogue,
				       const struct counter_definitions *definitions,
				       const char *architecture,
				       const struct definition_check_state *checking)
{
	static const char *const opencl[] = {"kernel_time", "busy_time", "kernels"};
	bool is_opencl =
		strncmp(architecture, "opencl", 6) == 0 || strncmp(architecture, "pocl", 4) == 0;
	bool is_host = strcmp(architecture, "host") == 0 || strcmp(architecture, "x86_64") == 0;
	bool done = true;

	for (size_t i = 0; is_opencl && done && i < ARRAY_SIZE(opencl); i++)
		done = add_event_counter_named_with_prefix(catalogue, "", opencl[i]);
	for (uint32_t i = 0; (is_opencl || is_host) && done && i < definitions->count; i++) {
		const struct counter_definition *definition = definitions->list[i];

		if (definition->file == checking->file || definition->expression[0] != '\0' ||
		    strcmp(definition->architecture, "host") != 0)
			continue;
		done = add_event_counter_named_with_prefix(catalogue, "", definition->name);
		if (done && is_host)
			done = add_event_counter_named_with_prefix(catalogue, "system_",
								   definition->name);
	}
	return done;
}

/* false: no memory. */
static bool check_architecture_definitions(const struct counter_definitions *definitions,
					   const char *architecture,
					   struct definition_check_state *checking)
{
	const char *const architectures[] = {architecture, NULL};
	struct counter_catalogue *catalogue = calloc(1, sizeof(*catalogue));
	bool done = true;

	if (catalogue == NULL)
		return false;
	catalogue->is_for_checking_only = true;
	if (strncmp(architecture, "sm", 2) == 0)
		catalogue->may_exist_on_agent = may_be_nvidia_counter_name;
	catalogue_add_properties(catalogue);
	done = add_device_listed_counters(catalogue, definitions, architecture, checking);
	for (uint32_t i = 0; i < definitions->count && done; i++) {
		const struct counter_definition *definition = definitions->list[i];

		/* One that a later file redefines is not looked at. */
		if (strcmp(definition->architecture, architecture) == 0 &&
		    definitions_find(definitions, definition->name, architectures) == definition)
			done = add_definition_to_catalogue(catalogue, definition);
	}
	if (done)
		catalogue_link_all_counters(catalogue, report_counter_problem, checking);
	done = done && !catalogue->memory.failed;
	catalogue_free(catalogue);
	free(catalogue);
	return done;
}

/* The first of the latest file's with this architecture. */
static bool is_first_of_architecture_in_file(const struct counter_definitions *definitions,
					     uint32_t number)
{
	const struct counter_definition *definition = definitions->list[number];

	for (uint32_t i = number; i-- > 0 && definitions->list[i]->file == definition->file;) {
		if (strcmp(definitions->list[i]->architecture, definition->architecture) == 0)
			return false;
	}
	return true;
}

int definitions_report_last_file_mistakes(const struct counter_definitions *definitions,
					  definition_problem_callback_t told, void *context)
{
	struct definition_check_state checking = {.told = told, .context = context};

	if (definitions->count == 0)
		return 0;
	checking.file = definitions->list[definitions->count - 1]->file;
	if (checking.file->number != definitions->files)
		return 0; /* the latest one has none */
	for (uint32_t i = 0; i < definitions->count; i++) {
		if (definitions->list[i]->file == checking.file &&
		    is_first_of_architecture_in_file(definitions, i) &&
		    !check_architecture_definitions(definitions, definitions->list[i]->architecture,
						    &checking))
			return -1;
	}
	return checking.mistake_count;
}

static void ignore_problem(void *context, const char *path, unsigned line, unsigned column,
			   const char *text)
{
	(void)context;
	(void)path;
	(void)line;
	(void)column;
	(void)text;
}

int counter_file_report_mistakes_with_base_file(const char *base, size_t base_size,
						const char *text, size_t size, const char *path,
						definition_problem_callback_t problem,
						void *context)
{
	struct counter_definitions *definitions = calloc(1, sizeof(*definitions));
	int mistakes = 0, more;

	if (definitions == NULL)
		return -1;
	if (base != NULL)
		mistakes = definitions_add_file_text(definitions, "", base, base_size,
						     ignore_problem, NULL);
	if (mistakes >= 0)
		mistakes =
			definitions_add_file_text(definitions, path, text, size, problem, context);
	if (mistakes >= 0) {
		more = definitions_report_last_file_mistakes(definitions, problem, context);
		mistakes = more < 0 ? -1 : mistakes + more;
	}
	definitions_free(definitions);
	free(definitions);
	return mistakes;
}

int counter_file_report_mistakes(const char *text, size_t size, const char *path,
				 definition_problem_callback_t problem, void *context)
{
	return counter_file_report_mistakes_with_base_file(NULL, 0, text, size, path, problem,
							   context);
}
