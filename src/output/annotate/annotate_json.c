/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An annotation for programs: the same numbers, exact.
 */
#include "output/annotate/annotate.h"
#include "output/incomplete/incomplete.h"
#include "output/json_writer.h"

static void put_line(struct json_writer *json, const struct annotated_line *line)
{
	json_object_begin(json, NULL);
	json_put_count(json, "line", line->number);
	json_put_count(json, "self", line->self);
	json_put_count(json, "total", line->total);
	json_put_text(json, "text", line->text);
	json_object_end(json);
}

static void put_sources(struct json_writer *json, const struct annotation *annotation)
{
	json_array_begin(json, "sources");
	for (size_t i = 0; i < annotation->source_count; i++) {
		const struct annotated_source *source = &annotation->sources[i];
		json_object_begin(json, NULL);
		json_put_text(json, "file", source->path);
		json_put_text(json, "read_from", source->found);
		json_put_text(json, "problem", source->problem);
		json_array_begin(json, "lines");
		for (size_t k = 0; k < source->count; k++)
			put_line(json, &source->lines[k]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	json_put_count(json, "self_without_line", annotation->self_without_line);
}

static void put_instruction(struct json_writer *json, const struct annotation *annotation,
			    const struct annotated_instruction *instruction)
{
	const struct model_frame *frame =
		instruction->frame == MODEL_ENTRY_INDEX_NONE
			? NULL
			: &annotation->session->frames[instruction->frame];

	json_object_begin(json, NULL);
	json_put_count(json, "address", instruction->address);
	json_put_count(json, "self", instruction->self);
	json_put_count(json, "with_inlined", instruction->with_inlined);
	json_put_text(json, "text", instruction->text);
	if (frame != NULL) {
		json_put_text(json, "function", frame->function);
		json_put_text(json, "file", frame->file);
		json_put_count(json, "line", frame->line);
	}
	json_object_end(json);
}

static void put_codes(struct json_writer *json, const struct annotation *annotation)
{
	json_array_begin(json, "code");
	for (size_t i = 0; i < annotation->code_count; i++) {
		const struct annotated_code *code = &annotation->codes[i];
		json_object_begin(json, NULL);
		json_put_text(json, "module", code->path);
		json_put_text(json, "symbol", code->symbol);
		json_put_text(json, "problem", code->problem);
		json_put_count(json, "self", code->self);
		json_array_begin(json, "instructions");
		for (size_t k = 0; k < code->count; k++)
			put_instruction(json, annotation, &code->instructions[k]);
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	json_put_count(json, "self_without_instruction", annotation->self_without_address);
}

static void put_text(void *context, const char *text)
{
	json_put_text(context, NULL, text);
}

static void put_incomplete(struct json_writer *json, const struct session *session)
{
	json_array_begin(json, "incomplete");
	incomplete_visit(session, false, put_text, json);
	json_array_end(json);
}

int annotation_write_json(const struct annotation *annotation, FILE *stream,
			  struct problem *problem)
{
	const struct session *session = annotation->session;
	const struct model_frame *frame = &session->frames[annotation->function.frame];
	struct json_writer json;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "function", frame->function);
	json_put_text(&json, "module",
		      frame->module == MODEL_ENTRY_INDEX_NONE
			      ? NULL
			      : session->modules[frame->module].path);
	json_put_text(&json, "measure", view_measure_get_name(annotation->options->measure));
	json_put_text(&json, "unit", view_measure_get_unit(annotation->options->measure));
	json_put_count(&json, "self", annotation->function.self);
	json_put_count(&json, "total", annotation->function.total);
	json_put_count(&json, "waiting_for_cpu", annotation->waiting_for_cpu);
	json_put_count(&json, "all_functions", annotation->whole);
	put_incomplete(&json, session);
	if (annotation->options->wants_source)
		put_sources(&json, annotation);
	if (annotation->options->wants_assembly)
		put_codes(&json, annotation);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}
