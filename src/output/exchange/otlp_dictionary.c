/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables that all profiles share; see otlp.h. Numbers of fields are those of profiles.proto.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/exchange/otlp.h"

enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	LINK_TRACE_ID_BYTES = 16,
	LINK_SPAN_ID_BYTES = 8,
};

static int init_table(struct otlp_table *table, size_t size)
{
	table->number_of_index = calloc(size + 1, sizeof(*table->number_of_index));
	table->indexes = calloc(size + 1, sizeof(*table->indexes));
	return table->number_of_index != NULL && table->indexes != NULL ? 0 : -ENOMEM;
}

static void deinit_table(struct otlp_table *table)
{
	free(table->number_of_index);
	free(table->indexes);
}

/* True: the entry is new. */
static bool find_or_add(struct otlp_table *table, uint32_t index, uint32_t *ret)
{
	*ret = table->number_of_index[index];
	if (*ret != 0)
		return false;
	table->indexes[table->count] = index;
	*ret = table->number_of_index[index] = ++table->count;
	return true;
}

int otlp_dictionary_init(struct otlp_writer *writer)
{
	const struct session *session = writer->session;
	size_t groups = (size_t)session->thread_count + session->process_count;
	int error = init_table(&writer->stacks, session->node_count);

	strings_init(&writer->strings);
	if (error == 0)
		error = init_table(&writer->locations, session->frame_count);
	if (error == 0)
		error = init_table(&writer->functions, session->function_count);
	if (error == 0)
		error = init_table(&writer->modules, session->module_count);
	if (error == 0)
		error = init_table(&writer->groups, groups);
	writer->node_of_location =
		calloc((size_t)session->frame_count + 1, sizeof(*writer->node_of_location));
	writer->frame_of_function =
		calloc((size_t)session->function_count + 1, sizeof(*writer->frame_of_function));
	if (writer->node_of_location == NULL || writer->frame_of_function == NULL)
		error = -ENOMEM;
	if (error == 0)
		otlp_get_string_number(writer, "");
	return error;
}

void otlp_dictionary_deinit(struct otlp_writer *writer)
{
	strings_deinit(&writer->strings);
	deinit_table(&writer->stacks);
	deinit_table(&writer->locations);
	deinit_table(&writer->functions);
	deinit_table(&writer->modules);
	deinit_table(&writer->groups);
	free(writer->node_of_location);
	free(writer->frame_of_function);
}

uint32_t otlp_get_string_number(struct otlp_writer *writer, const char *text)
{
	uint32_t number = 0;

	if (strings_find_or_add(&writer->strings, text, &number) != 0 &&
	    writer->protobuf.error == 0)
		writer->protobuf.error = -ENOMEM;
	return number;
}

/* ---- stacks ---- */

static const struct model_frame *get_node_frame(const struct otlp_writer *writer, uint32_t node)
{
	return &writer->session->frames[writer->session->nodes[node].frame];
}

/* The node outside all functions that are inlined at `node`. */
static uint32_t find_outermost(const struct otlp_writer *writer, uint32_t node)
{
	const struct model_calltree_node *nodes = writer->session->nodes;

	while (get_node_frame(writer, node)->kind == FRAME_INLINE &&
	       nodes[node].parent != MODEL_ENTRY_INDEX_NONE)
		node = nodes[node].parent;
	return node;
}

static uint32_t get_location_number(struct otlp_writer *writer, uint32_t node)
{
	uint32_t number;

	if (find_or_add(&writer->locations, writer->session->nodes[node].frame, &number))
		writer->node_of_location[number - 1] = node;
	return number;
}

uint32_t otlp_get_stack_number(struct otlp_writer *writer, uint32_t node)
{
	uint32_t number;

	find_or_add(&writer->stacks, node, &number);
	return number;
}

/* A packed list of numbers needs room for the deepest stack. */
static uint8_t *allocate_packed_path(const struct otlp_writer *writer)
{
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < writer->session->node_count; i++) {
		if (writer->session->nodes[i].depth > deepest)
			deepest = writer->session->nodes[i].depth;
	}
	return malloc(((size_t)deepest + 1) * PROTOBUF_VARINT_BYTES_MAX);
}

static void write_stacks(struct otlp_writer *writer)
{
	struct protobuf_writer *protobuf = &writer->protobuf;
	uint8_t *path = allocate_packed_path(writer);

	if (path == NULL && protobuf->error == 0)
		protobuf->error = -ENOMEM;
	protobuf_open_message(protobuf, DICTIONARY_STACK);
	protobuf_close_message(protobuf);
	for (uint32_t i = 0; protobuf->error == 0 && i < writer->stacks.count; i++) {
		uint8_t *at = path;
		for (uint32_t node = writer->stacks.indexes[i]; node != MODEL_ENTRY_INDEX_NONE;
		     node = writer->session->nodes[find_outermost(writer, node)].parent)
			at = protobuf_encode_varint(at, get_location_number(writer, node));
		protobuf_open_message(protobuf, DICTIONARY_STACK);
		protobuf_write_bytes(protobuf, 1, path, (size_t)(at - path));
		protobuf_close_message(protobuf);
	}
	free(path);
}

/* ---- locations ---- */

static void write_lines(struct otlp_writer *writer, uint32_t node)
{
	uint32_t end = find_outermost(writer, node), number;

	for (;; node = writer->session->nodes[node].parent) {
		const struct model_frame *frame = get_node_frame(writer, node);
		if (find_or_add(&writer->functions, frame->function_id, &number))
			writer->frame_of_function[number - 1] =
				(uint32_t)(frame - writer->session->frames);
		protobuf_open_message(&writer->protobuf, 3);
		protobuf_write_uint(&writer->protobuf, 1, number);
		protobuf_write_uint(&writer->protobuf, 2, frame->line);
		protobuf_close_message(&writer->protobuf);
		if (node == end)
			return;
	}
}

static void write_locations(struct otlp_writer *writer)
{
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, DICTIONARY_LOCATION);
	protobuf_close_message(protobuf);
	for (uint32_t i = 0; i < writer->locations.count; i++) {
		uint32_t node = writer->node_of_location[i], number;
		const struct model_frame *frame =
			get_node_frame(writer, find_outermost(writer, node));
		protobuf_open_message(protobuf, DICTIONARY_LOCATION);
		if (frame->module != MODEL_ENTRY_INDEX_NONE) {
			find_or_add(&writer->modules, frame->module, &number);
			protobuf_write_uint(protobuf, 1, number);
			protobuf_write_uint(protobuf, 2, frame->relative_pc);
		}
		write_lines(writer, node);
		protobuf_close_message(protobuf);
	}
}

static void write_functions(struct otlp_writer *writer)
{
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, DICTIONARY_FUNCTION);
	protobuf_close_message(protobuf);
	for (uint32_t i = 0; i < writer->functions.count; i++) {
		const struct model_frame *frame =
			&writer->session->frames[writer->frame_of_function[i]];
		protobuf_open_message(protobuf, DICTIONARY_FUNCTION);
		protobuf_write_uint(protobuf, 1, otlp_get_string_number(writer, frame->function));
		if (frame->linkage_name != NULL)
			protobuf_write_uint(protobuf, 2,
					    otlp_get_string_number(writer, frame->linkage_name));
		if (frame->file != NULL)
			protobuf_write_uint(protobuf, 3,
					    otlp_get_string_number(writer, frame->file));
		protobuf_write_uint(protobuf, 4, frame->function_line);
		protobuf_close_message(protobuf);
	}
}

/* ---- attributes ---- */

static void write_attribute(struct otlp_writer *writer, const char *key, const char *text,
			    uint64_t number)
{
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, DICTIONARY_ATTRIBUTE);
	protobuf_write_uint(protobuf, 1, otlp_get_string_number(writer, key));
	protobuf_open_message(protobuf, 2);
	if (text != NULL)
		protobuf_write_string(protobuf, 1, text);
	else
		protobuf_write_uint(protobuf, 3, number);
	protobuf_close_message(protobuf);
	protobuf_close_message(protobuf);
}

uint32_t otlp_get_thread_attribute(struct otlp_writer *writer, uint32_t group)
{
	uint32_t number;

	find_or_add(&writer->groups, group, &number);
	return 2 * number - 1;
}

/* Those of threads, two each, then the build IDs of modules. */
static void write_attributes(struct otlp_writer *writer)
{
	const struct session *session = writer->session;

	protobuf_open_message(&writer->protobuf, DICTIONARY_ATTRIBUTE);
	protobuf_close_message(&writer->protobuf);
	for (uint32_t i = 0; i < writer->groups.count; i++) {
		uint32_t process;
		const struct model_thread *thread =
			timed_samples_get_thread(session, writer->groups.indexes[i], &process);
		write_attribute(writer, "thread.id", NULL, thread != NULL ? thread->tid : 0);
		write_attribute(writer, "thread.name",
				thread != NULL ? thread->name : "other threads", 0);
	}
	for (uint32_t i = 0; i < writer->modules.count; i++) {
		const struct model_module *module = &session->modules[writer->modules.indexes[i]];
		char id[2 * sizeof(module->build_id) + 1] = "";
		for (uint32_t byte = 0; byte < module->build_id_size; byte++)
			snprintf(id + 2 * (size_t)byte, 3, "%02x", module->build_id[byte]);
		write_attribute(writer, "process.executable.build_id.gnu", id, 0);
	}
}

/* Addresses are those of the file, so that its mapping begins where they do. */
static void write_mappings(struct otlp_writer *writer)
{
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, DICTIONARY_MAPPING);
	protobuf_close_message(protobuf);
	for (uint32_t i = 0; i < writer->modules.count; i++) {
		const struct model_module *module =
			&writer->session->modules[writer->modules.indexes[i]];
		uint8_t attribute[PROTOBUF_VARINT_BYTES_MAX], *end;
		end = protobuf_encode_varint(attribute, 2 * writer->groups.count + i + 1);
		protobuf_open_message(protobuf, DICTIONARY_MAPPING);
		protobuf_write_uint(protobuf, 4, otlp_get_string_number(writer, module->path));
		if (module->build_id_size != 0)
			protobuf_write_bytes(protobuf, 5, attribute, (size_t)(end - attribute));
		protobuf_close_message(protobuf);
	}
}

static void write_link_and_strings(struct otlp_writer *writer)
{
	static const uint8_t zeros[LINK_TRACE_ID_BYTES];
	struct protobuf_writer *protobuf = &writer->protobuf;

	protobuf_open_message(protobuf, DICTIONARY_LINK);
	protobuf_write_bytes(protobuf, 1, zeros, LINK_TRACE_ID_BYTES);
	protobuf_write_bytes(protobuf, 2, zeros, LINK_SPAN_ID_BYTES);
	protobuf_close_message(protobuf);
	for (uint32_t i = 0; i < writer->strings.count; i++)
		protobuf_write_string(protobuf, DICTIONARY_STRING, writer->strings.text[i]);
}

/* Each table gives numbers to entries of the next. */
void otlp_write_dictionary(struct otlp_writer *writer, unsigned field)
{
	protobuf_open_message(&writer->protobuf, field);
	write_stacks(writer);
	write_locations(writer);
	write_functions(writer);
	write_mappings(writer);
	write_attributes(writer);
	write_link_and_strings(writer);
	protobuf_close_message(&writer->protobuf);
}
