/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tables that all threads share; see gecko.h. Each is an object of columns.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/exchange/gecko.h"

static bool is_waiting(uint32_t source)
{
	return source == SPOOL_SOURCE_WALL;
}

static void add_blocked_stack(struct gecko_writer *writer, uint32_t node)
{
	uint32_t frame = writer->session->nodes[node].frame;

	if (writer->blocked_of_node[node] != 0)
		return;
	if (writer->blocked_of_frame[frame] == 0) {
		writer->frames_of_blocked[writer->blocked_frame_count] = frame;
		writer->blocked_of_frame[frame] = ++writer->blocked_frame_count;
	}
	writer->nodes_of_blocked[writer->blocked_stack_count] = node;
	writer->blocked_of_node[node] = ++writer->blocked_stack_count;
}

int gecko_tables_init(struct gecko_writer *writer)
{
	const struct session *session = writer->session;
	size_t frames = (size_t)session->frame_count + 1, nodes = (size_t)session->node_count + 1;

	strings_init(&writer->strings);
	strings_init(&writer->sources);
	writer->function_frames =
		malloc(((size_t)session->function_count + 1) * sizeof(*writer->function_frames));
	writer->blocked_of_frame = calloc(frames, sizeof(*writer->blocked_of_frame));
	writer->frames_of_blocked = calloc(frames, sizeof(*writer->frames_of_blocked));
	writer->blocked_of_node = calloc(nodes, sizeof(*writer->blocked_of_node));
	writer->nodes_of_blocked = calloc(nodes, sizeof(*writer->nodes_of_blocked));
	if (writer->function_frames == NULL || writer->blocked_of_frame == NULL ||
	    writer->frames_of_blocked == NULL || writer->blocked_of_node == NULL ||
	    writer->nodes_of_blocked == NULL || code_origins_create(session, &writer->origins) != 0)
		return -ENOMEM;
	memset(writer->function_frames, 0xff,
	       session->function_count * sizeof(*writer->function_frames));
	for (uint32_t i = 0; i < session->frame_count; i++) {
		uint32_t *frame = &writer->function_frames[session->frames[i].function_id];
		if (*frame == MODEL_ENTRY_INDEX_NONE)
			*frame = i;
	}
	for (size_t i = 0; i < writer->samples.count; i++) {
		if (is_waiting(writer->samples.samples[i].source))
			add_blocked_stack(writer, writer->samples.samples[i].node);
	}
	return 0;
}

void gecko_tables_deinit(struct gecko_writer *writer)
{
	strings_deinit(&writer->strings);
	strings_deinit(&writer->sources);
	code_origins_destroy(&writer->origins);
	free(writer->function_frames);
	free(writer->blocked_of_frame);
	free(writer->frames_of_blocked);
	free(writer->blocked_of_node);
	free(writer->nodes_of_blocked);
}

uint32_t gecko_get_stack(const struct gecko_writer *writer, const struct timed_sample *sample)
{
	return is_waiting(sample->source)
		       ? writer->session->node_count + writer->blocked_of_node[sample->node] - 1
		       : sample->node;
}

uint32_t gecko_get_string_number(struct gecko_writer *writer, const char *text)
{
	uint32_t number = 0;

	return strings_find_or_add(&writer->strings, text, &number) == 0 ? number : 0;
}

/* ---- categories ---- */

static const struct {
	const char *name, *color;
} categories[GECKO_CATEGORY_COUNT] = {
	[GECKO_OTHER] = {"Other", "grey"},
	[GECKO_PROGRAM] = {"Program", "yellow"},
	[GECKO_LIBRARY] = {"Library", "blue"},
	[GECKO_RUNTIME] = {"C runtime", "lightblue"},
	[GECKO_INTERPRETED] = {"Interpreted", "green"},
	[GECKO_BLOCKED] = {"Blocked", "purple"},
	[GECKO_WAITING_FOR_CPU] = {"Waiting for a CPU", "red"},
	[GECKO_DEVICE] = {"Device", "magenta"},
};

void gecko_write_categories(struct gecko_writer *writer)
{
	struct json_writer *json = &writer->json;

	json_array_begin(json, "categories");
	for (int i = 0; i < GECKO_CATEGORY_COUNT; i++) {
		json_object_begin(json, NULL);
		json_put_text(json, "name", categories[i].name);
		json_put_text(json, "color", categories[i].color);
		json_array_begin(json, "subcategories");
		json_put_text(json, NULL, "Other");
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

static enum gecko_category get_category(const struct gecko_writer *writer, uint32_t index)
{
	static const enum gecko_category by_origin[] = {[CODE_OF_PROGRAM] = GECKO_PROGRAM,
							[CODE_OF_LIBRARY] = GECKO_LIBRARY,
							[CODE_OF_C_RUNTIME] = GECKO_RUNTIME,
							[CODE_OF_NOTHING] = GECKO_OTHER};

	switch (writer->session->frames[index].kind) {
	case FRAME_INTERPRETED:
		return GECKO_INTERPRETED;
	case FRAME_THREAD_STATE:
		return GECKO_WAITING_FOR_CPU;
	case FRAME_DEVICE_WORK:
		return GECKO_DEVICE;
	default:
		return by_origin[code_origins_get(&writer->origins, index)];
	}
}

/* ---- columns ---- */

/* A column with the same value in every row. */
static void put_constant_column(struct json_writer *json, const char *key, uint32_t count,
				const char *value)
{
	json_array_begin(json, key);
	for (uint32_t i = 0; i < count; i++)
		json_put_digits(json, NULL, value);
	json_array_end(json);
}

static void put_number_or_null(struct json_writer *json, uint32_t number)
{
	if (number != 0)
		json_put_count(json, NULL, number);
	else
		json_put_null(json, NULL);
}

/* Rows of the table of frames: the session's, then those of what waited. */
static uint32_t count_frames(const struct gecko_writer *writer)
{
	return writer->session->frame_count + writer->blocked_frame_count;
}

static const struct model_frame *get_frame(const struct gecko_writer *writer, uint32_t row)
{
	const struct session *session = writer->session;

	return &session->frames[row < session->frame_count
					? row
					: writer->frames_of_blocked[row - session->frame_count]];
}

static void write_frame_addresses(struct gecko_writer *writer)
{
	json_array_begin(&writer->json, "address");
	for (uint32_t i = 0; i < count_frames(writer); i++) {
		const struct model_frame *frame = get_frame(writer, i);
		if (frame->module == MODEL_ENTRY_INDEX_NONE)
			json_put_signed_integer(&writer->json, NULL, -1);
		else
			json_put_count(&writer->json, NULL, frame->relative_pc);
	}
	json_array_end(&writer->json);
}

/* How many functions are inlined around the frame; a frame is always at the same depth. */
static int write_inline_depths(struct gecko_writer *writer)
{
	const struct session *session = writer->session;
	uint8_t *depths = calloc((size_t)session->frame_count + 1, 1);

	if (depths == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];
		if (session->frames[node->frame].kind == FRAME_INLINE &&
		    node->parent != MODEL_ENTRY_INDEX_NONE) {
			uint8_t outer = depths[session->nodes[node->parent].frame];
			depths[node->frame] = outer < UINT8_MAX ? outer + 1 : outer;
		}
	}
	json_array_begin(&writer->json, "inlineDepth");
	for (uint32_t i = 0; i < count_frames(writer); i++)
		json_put_count(&writer->json, NULL, depths[get_frame(writer, i) - session->frames]);
	json_array_end(&writer->json);
	free(depths);
	return 0;
}

static int write_frame_table(struct gecko_writer *writer)
{
	struct json_writer *json = &writer->json;
	uint32_t count = count_frames(writer);

	json_object_begin(json, "frameTable");
	write_frame_addresses(writer);
	int error = write_inline_depths(writer);
	json_array_begin(json, "category");
	for (uint32_t i = 0; i < count; i++)
		json_put_count(json, NULL,
			       i < writer->session->frame_count ? get_category(writer, i)
								: GECKO_BLOCKED);
	json_array_end(json);
	put_constant_column(json, "subcategory", count, "0");
	json_array_begin(json, "func");
	for (uint32_t i = 0; i < count; i++)
		json_put_count(json, NULL, get_frame(writer, i)->function_id);
	json_array_end(json);
	put_constant_column(json, "nativeSymbol", count, "null");
	put_constant_column(json, "innerWindowID", count, "0");
	json_array_begin(json, "line");
	for (uint32_t i = 0; i < count; i++)
		put_number_or_null(json, get_frame(writer, i)->line);
	json_array_end(json);
	put_constant_column(json, "column", count, "null");
	json_put_count(json, "length", count);
	json_object_end(json);
	return error;
}

static void write_stack_table(struct gecko_writer *writer)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;
	uint32_t count = session->node_count + writer->blocked_stack_count;

	json_object_begin(json, "stackTable");
	json_array_begin(json, "frame");
	for (uint32_t i = 0; i < session->node_count; i++)
		json_put_count(json, NULL, session->nodes[i].frame);
	for (uint32_t i = 0; i < writer->blocked_stack_count; i++) {
		uint32_t frame = session->nodes[writer->nodes_of_blocked[i]].frame;
		json_put_count(json, NULL,
			       session->frame_count + writer->blocked_of_frame[frame] - 1);
	}
	json_array_end(json);
	json_array_begin(json, "prefix");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = i < session->node_count
					? i
					: writer->nodes_of_blocked[i - session->node_count];
		if (session->nodes[node].parent == MODEL_ENTRY_INDEX_NONE)
			json_put_null(json, NULL);
		else
			json_put_count(json, NULL, session->nodes[node].parent);
	}
	json_array_end(json);
	json_put_count(json, "length", count);
	json_object_end(json);
}

/* ---- functions, modules, sources ---- */

static const struct model_frame *get_frame_of_function(const struct gecko_writer *writer,
						       uint32_t function)
{
	uint32_t frame = writer->function_frames[function];

	return frame == MODEL_ENTRY_INDEX_NONE ? NULL : &writer->session->frames[frame];
}

static void put_source(struct gecko_writer *writer, const struct model_frame *frame)
{
	uint32_t source = 0;

	if (frame == NULL || frame->file == NULL ||
	    strings_find_or_add(&writer->sources, frame->file, &source) != 0)
		json_put_null(&writer->json, NULL);
	else
		json_put_count(&writer->json, NULL, source);
}

/* Functions of modules belong to the resource with the module's number. */
static void write_function_table(struct gecko_writer *writer)
{
	struct json_writer *json = &writer->json;
	uint32_t count = writer->session->function_count;

	json_object_begin(json, "funcTable");
	json_array_begin(json, "name");
	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *frame = get_frame_of_function(writer, i);
		json_put_count(
			json, NULL,
			gecko_get_string_number(writer, frame != NULL ? frame->function : ""));
	}
	json_array_end(json);
	put_constant_column(json, "isJS", count, "false");
	put_constant_column(json, "relevantForJS", count, "false");
	json_array_begin(json, "resource");
	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *frame = get_frame_of_function(writer, i);
		json_put_signed_integer(json, NULL,
					frame == NULL || frame->module == MODEL_ENTRY_INDEX_NONE
						? -1
						: (int64_t)frame->module);
	}
	json_array_end(json);
	json_array_begin(json, "source");
	for (uint32_t i = 0; i < count; i++)
		put_source(writer, get_frame_of_function(writer, i));
	json_array_end(json);
	json_array_begin(json, "lineNumber");
	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *frame = get_frame_of_function(writer, i);
		put_number_or_null(json, frame != NULL ? frame->function_line : 0);
	}
	json_array_end(json);
	put_constant_column(json, "columnNumber", count, "null");
	json_put_count(json, "length", count);
	json_object_end(json);
}

static void write_resource_table(struct gecko_writer *writer)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;

	json_object_begin(json, "resourceTable");
	json_array_begin(json, "lib");
	for (uint32_t i = 0; i < session->module_count; i++)
		json_put_count(json, NULL, i);
	json_array_end(json);
	json_array_begin(json, "name");
	for (uint32_t i = 0; i < session->module_count; i++)
		json_put_count(json, NULL,
			       gecko_get_string_number(writer, session->modules[i].name));
	json_array_end(json);
	put_constant_column(json, "host", session->module_count, "null");
	put_constant_column(json, "type", session->module_count, "1");
	json_put_count(json, "length", session->module_count);
	json_object_end(json);
}

/* The build ID as symbol servers of Breakpad have it: its first 16 bytes as a GUID, and an age. */
static void format_breakpad_id(const struct model_module *module, char ret[64])
{
	static const uint8_t order[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};

	ret[0] = 0;
	for (int i = 0; module->build_id_size >= 16 && i < 16; i++)
		snprintf(ret + 2 * (size_t)i, 3, "%02X", module->build_id[order[i]]);
	if (ret[0] != 0)
		strcat(ret, "0");
}

void gecko_write_libraries(struct gecko_writer *writer)
{
	const struct session *session = writer->session;
	struct json_writer *json = &writer->json;

	json_array_begin(json, "libs");
	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];
		char id[64];
		format_breakpad_id(module, id);
		json_object_begin(json, NULL);
		json_put_text(json, "arch", "x86_64");
		json_put_text(json, "name", module->name);
		json_put_text(json, "path", module->path);
		json_put_text(json, "debugName", module->name);
		json_put_text(json, "debugPath", module->path);
		json_put_text(json, "breakpadId", id);
		if (module->build_id_size != 0)
			json_put_bytes_as_hexadecimal(json, "codeId", module->build_id,
						      module->build_id_size);
		else
			json_put_null(json, "codeId");
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_sources(struct gecko_writer *writer)
{
	struct json_writer *json = &writer->json;
	uint32_t count = writer->sources.count;

	json_object_begin(json, "sources");
	put_constant_column(json, "uuid", count, "null");
	json_array_begin(json, "filename");
	for (uint32_t i = 0; i < count; i++)
		json_put_count(json, NULL,
			       gecko_get_string_number(writer, writer->sources.text[i]));
	json_array_end(json);
	json_put_count(json, "length", count);
	json_object_end(json);
}

static void write_native_symbols(struct gecko_writer *writer)
{
	static const char *const columns[] = {"libIndex", "address", "name", "functionSize"};

	json_object_begin(&writer->json, "nativeSymbols");
	for (int i = 0; i < 4; i++) {
		json_array_begin(&writer->json, columns[i]);
		json_array_end(&writer->json);
	}
	json_put_count(&writer->json, "length", 0);
	json_object_end(&writer->json);
}

int gecko_write_shared_tables(struct gecko_writer *writer)
{
	struct json_writer *json = &writer->json;

	json_object_begin(json, "shared");
	write_stack_table(writer);
	int error = write_frame_table(writer);
	write_function_table(writer);
	write_resource_table(writer);
	write_native_symbols(writer);
	write_sources(writer);
	json_array_begin(json, "stringArray");
	for (uint32_t i = 0; i < writer->strings.count; i++)
		json_put_text(json, NULL, writer->strings.text[i]);
	json_array_end(json);
	json_object_end(json);
	return error;
}
