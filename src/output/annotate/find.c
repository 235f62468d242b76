/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which function is meant. The ways of naming one are tried from the strictest on; the first that
 * finds any decides.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/annotate/annotate.h"
#include "output/code_origin.h"
#include "output/format.h"

/* A name as the user gave it, in parts. */
struct wanted_name {
	const char *text;
	size_t size;
	const char *file, *module; /* NULL: any */
	size_t file_size;
};

/* The bytes of "operator<<", "operator()" and the like; 0: none is here. */
static size_t measure_operator(const char *function, size_t at)
{
	static const char word[] = "operator", signs[] = "<>=!-+*/%^&|~,[]";
	const char *rest = function + at;

	if (strncmp(rest, word, sizeof(word) - 1) != 0 ||
	    (at != 0 && function[at - 1] != ':' && function[at - 1] != ' '))
		return 0;
	rest += sizeof(word) - 1;
	if (strncmp(rest, "()", 2) == 0)
		return sizeof(word) - 1 + 2;
	size_t count = strspn(rest, signs);
	return count != 0 ? sizeof(word) - 1 + count : 0;
}

/* Where the name's last part begins, "f" of "int ns::c::f<int>(int) const" or of Python's
 * "module.f"; where it ends, which is before parameters and before what a compiler adds,
 * "f.isra.0"; and where its template arguments begin, or the end. */
struct name_parts {
	size_t last, end, arguments;
};

/* A part that ends the one before it: a namespace, a return type, a module of Python. */
static size_t measure_separator(const struct model_frame *frame, size_t at)
{
	const char *function = frame->function;

	if (function[at] == ':' && function[at + 1] == ':')
		return 2;
	if (frame->kind == FRAME_INTERPRETED)
		return function[at] == '.';
	return (at < 8 || strncmp(function + at - 8, "operator", 8) != 0) && function[at] == ' ';
}

static struct name_parts find_name_parts(const struct model_frame *frame)
{
	const char *function = frame->function;
	struct name_parts parts = {0, strlen(function), SIZE_MAX};
	size_t depth = 0;

	for (size_t i = 0; i < parts.end; i++) {
		size_t sign = depth == 0 ? measure_operator(function, i) : 0;
		size_t separator = depth == 0 ? measure_separator(frame, i) : 0;
		bool follows_name = depth == 0 && i > parts.last;

		if (sign != 0) {
			i += sign - 1;
		} else if (separator != 0) {
			parts.last = i + separator;
			parts.arguments = SIZE_MAX;
			i += separator - 1;
		} else if (follows_name && (function[i] == '(' || function[i] == '.')) {
			parts.end = i;
		} else if (function[i] == '<' || function[i] == '(') {
			if (follows_name && parts.arguments == SIZE_MAX)
				parts.arguments = i;
			depth++;
		} else if ((function[i] == '>' || function[i] == ')') && depth > 0) {
			depth--;
		}
	}
	if (parts.arguments > parts.end)
		parts.arguments = parts.end;
	return parts;
}

static bool equals(const char *text, size_t size, const struct wanted_name *name)
{
	return size == name->size && memcmp(text, name->text, size) == 0;
}

enum { NAME_WAYS = 5 };

static bool is_called(const struct model_frame *frame, const struct wanted_name *name, int way)
{
	const char *function = frame->function;
	struct name_parts parts = find_name_parts(frame);

	switch (way) {
	case 0:
		return equals(function, strlen(function), name);
	case 1:
		return frame->linkage_name != NULL &&
		       equals(frame->linkage_name, strlen(frame->linkage_name), name);
	case 2:
		return equals(function, parts.end, name);
	case 4:
		return equals(function + parts.last, parts.arguments - parts.last, name);
	default:
		return equals(function + parts.last, parts.end - parts.last, name);
	}
}

static bool is_of_file(const struct model_frame *frame, const struct wanted_name *name)
{
	if (name->file == NULL)
		return true;
	size_t size = frame->file != NULL ? strlen(frame->file) : 0;
	return size >= name->file_size &&
	       memcmp(frame->file + size - name->file_size, name->file, name->file_size) == 0 &&
	       (size == name->file_size || frame->file[size - name->file_size - 1] == '/');
}

static bool is_of_module(const struct session *session, const struct model_frame *frame,
			 const struct wanted_name *name)
{
	if (name->module == NULL)
		return true;
	return frame->module != MODEL_ENTRY_INDEX_NONE &&
	       (strcmp(session->modules[frame->module].name, name->module) == 0 ||
		strcmp(session->modules[frame->module].path, name->module) == 0);
}

/* ---- candidates ---- */

static int compare_functions_by_weight(const void *left, const void *right)
{
	const struct annotated_function *a = left, *b = right;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* By function id: its first frame that is called so. */
static size_t mark_functions(const struct session *session, const struct wanted_name *name, int way,
			     uint32_t *frame_of_function)
{
	size_t count = 0;

	for (uint32_t i = 0; i < session->frame_count; i++) {
		const struct model_frame *frame = &session->frames[i];
		if (frame_of_function[frame->function_id] != MODEL_ENTRY_INDEX_NONE ||
		    !is_called(frame, name, way) || !is_of_file(frame, name) ||
		    !is_of_module(session, frame, name))
			continue;
		frame_of_function[frame->function_id] = i;
		count++;
	}
	return count;
}

static int weigh_functions(const struct session *session, enum view_measure_kind measure,
			   const uint32_t *frame_of_function, struct annotated_function *functions)
{
	struct view_flat_profile_row *rows;
	size_t row_count, count = 0;
	int error = view_build_flat_profile(session, measure, &rows, &row_count);

	if (error != 0)
		return error;
	for (uint32_t i = 0; i < session->function_count; i++) {
		if (frame_of_function[i] == MODEL_ENTRY_INDEX_NONE)
			continue;
		functions[count] = (struct annotated_function){.function_id = i,
							       .frame = frame_of_function[i]};
		for (size_t k = 0; k < row_count; k++) {
			if (rows[k].function_id != i)
				continue;
			functions[count].self = rows[k].self;
			functions[count].total = rows[k].inclusive;
		}
		count++;
	}
	free(rows);
	return 0;
}

static int find_functions_by_parts(const struct session *session, enum view_measure_kind measure,
				   const struct wanted_name *name, struct annotated_function **ret,
				   size_t *ret_count)
{
	uint32_t *frame_of_function =
		malloc(((size_t)session->function_count + 1) * sizeof(*frame_of_function));
	int error = 0;

	*ret_count = 0;
	if (frame_of_function == NULL)
		return -ENOMEM;
	memset(frame_of_function, 0xff, session->function_count * sizeof(*frame_of_function));
	for (int way = 0; *ret_count == 0 && way < NAME_WAYS; way++)
		*ret_count = mark_functions(session, name, way, frame_of_function);
	if (*ret_count != 0) {
		*ret = calloc(*ret_count, sizeof(**ret));
		error = *ret == NULL ? -ENOMEM
				     : weigh_functions(session, measure, frame_of_function, *ret);
	}
	if (error == 0 && *ret_count != 0)
		qsort(*ret, *ret_count, sizeof(**ret), compare_functions_by_weight);
	free(frame_of_function);
	return error;
}

/* FILE:NAME has one colon: two are of the name. */
static const char *find_file_separator(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon != NULL && colon != name && colon[1] != ':' && colon[1] != 0 ? colon : NULL;
}

int annotation_find_functions(const struct session *session, enum view_measure_kind measure,
			      const char *name, struct annotated_function **ret, size_t *ret_count)
{
	struct wanted_name wanted = {.text = name, .size = strlen(name)};
	const char *at = strrchr(name, '@'), *colon = find_file_separator(name);

	*ret = NULL;
	int error = find_functions_by_parts(session, measure, &wanted, ret, ret_count);
	if (error == 0 && *ret_count == 0 && at != NULL && at != name) {
		wanted.module = at + 1;
		wanted.size = (size_t)(at - name);
		error = find_functions_by_parts(session, measure, &wanted, ret, ret_count);
	}
	if (error == 0 && *ret_count == 0 && colon != NULL) {
		wanted = (struct wanted_name){.text = colon + 1,
					      .size = strlen(colon + 1),
					      .file = name,
					      .file_size = (size_t)(colon - name)};
		error = find_functions_by_parts(session, measure, &wanted, ret, ret_count);
	}
	if (error != 0) {
		free(*ret);
		*ret = NULL;
	}
	return error;
}

/* ---- the hottest ---- */

static bool has_code(const struct model_frame *frame)
{
	return frame->kind != FRAME_SYNTHETIC && frame->kind != FRAME_THREAD_STATE &&
	       frame->kind != FRAME_DEVICE_WORK;
}

/* The node's function if it is the user's, or the nearest caller that is. What a device did is of
 * the function that launched it. */
static uint32_t find_own_frame(const struct session *session, const struct code_origins *origins,
			       uint32_t node)
{
	while (node != MODEL_ENTRY_INDEX_NONE &&
	       (!has_code(&session->frames[session->nodes[node].frame]) ||
		code_origins_get(origins, session->nodes[node].frame) != CODE_OF_PROGRAM))
		node = session->nodes[node].parent;
	return node == MODEL_ENTRY_INDEX_NONE ? MODEL_ENTRY_INDEX_NONE : session->nodes[node].frame;
}

/* The frame of the function with the largest sum; MODEL_ENTRY_INDEX_NONE where all are 0. */
static uint32_t find_heaviest_frame(const struct session *session, enum view_measure_kind measure,
				    const struct code_origins *origins, uint64_t *sums)
{
	uint32_t heaviest = MODEL_ENTRY_INDEX_NONE;

	memset(sums, 0, session->function_count * sizeof(*sums));
	for (uint32_t i = 0; i < session->node_count; i++) {
		uint32_t frame = origins != NULL ? find_own_frame(session, origins, i)
						 : session->nodes[i].frame;
		if (frame == MODEL_ENTRY_INDEX_NONE || !has_code(&session->frames[frame]))
			continue;
		uint64_t *sum = &sums[session->frames[frame].function_id];
		*sum += view_get_node_self_weight(&session->nodes[i], measure);
		if (*sum != 0 && (heaviest == MODEL_ENTRY_INDEX_NONE ||
				  *sum > sums[session->frames[heaviest].function_id]))
			heaviest = frame;
	}
	return heaviest;
}

int annotation_find_hottest_function(const struct session *session, enum view_measure_kind measure,
				     struct annotated_function *ret)
{
	struct view_flat_profile_row *rows = NULL;
	struct code_origins origins = {NULL};
	uint32_t frame = MODEL_ENTRY_INDEX_NONE;
	size_t count = 0;
	uint64_t *sums = calloc((size_t)session->function_count + 1, sizeof(*sums));
	int error = sums == NULL ? -ENOMEM : code_origins_create(session, &origins);

	if (error == 0) {
		frame = find_heaviest_frame(session, measure, &origins, sums);
		if (frame == MODEL_ENTRY_INDEX_NONE)
			frame = find_heaviest_frame(session, measure, NULL, sums);
		error = view_build_flat_profile(session, measure, &rows, &count);
	}
	if (error == 0 && frame == MODEL_ENTRY_INDEX_NONE)
		error = 1;
	if (error == 0)
		*ret = (struct annotated_function){session->frames[frame].function_id, frame, 0, 0};
	for (size_t i = 0; error == 0 && i < count; i++) {
		if (rows[i].function_id != ret->function_id)
			continue;
		ret->self = rows[i].self;
		ret->total = rows[i].inclusive;
	}
	code_origins_destroy(&origins);
	free(rows);
	free(sums);
	return error;
}
