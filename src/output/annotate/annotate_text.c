/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An annotation on the terminal. Names and lines are of others: they are written without what a
 * terminal would obey.
 */
#include <inttypes.h>
#include <string.h>

#include "output/annotate/annotate.h"
#include "output/format.h"

#define NAME_BYTES 512u
#define TAB_STOP   8u
#define LINE_BYTES 4096u

static struct quantity_text to_text(const struct annotation *annotation, uint64_t value)
{
	return quantity_from_measure(value, annotation->options->measure);
}

/* A number, or nothing for 0, so that the lines with a cost are seen. */
static void write_value(const struct annotation *annotation, FILE *stream, uint64_t value)
{
	fprintf(stream, "%10s", value != 0 ? to_text(annotation, value).text : "");
}

static void write_self(const struct annotation *annotation, FILE *stream, uint64_t self)
{
	write_value(annotation, stream, self);
	fprintf(stream, " %7s",
		self != 0 ? quantity_from_share(self, annotation->function.self).text : "");
}

static void write_name(FILE *stream, const char *name)
{
	format_write_printable_text(stream, name, strlen(name));
}

/* ---- what is annotated ---- */

static const char *get_measure_words(const struct annotation *annotation)
{
	static const char *const words[VIEW_MEASURE_COUNT] = {
		[VIEW_MEASURE_CPU_TIME] = "CPU time",
		[VIEW_MEASURE_REAL_TIME] = "real time",
		[VIEW_MEASURE_DEVICE_TIME] = "device time"};
	enum view_measure_kind measure = annotation->options->measure;

	return measure == VIEW_MEASURE_COUNTER_EVENTS
		       ? session_get_overflow_event_name(annotation->session)
		       : words[measure];
}

static void write_head(const struct annotation *annotation, FILE *stream)
{
	const struct annotated_function *function = &annotation->function;
	char name[NAME_BYTES];

	format_function_with_module(name, sizeof(name), annotation->session, function->frame);
	write_name(stream, name);
	fputs("\n  ", stream);
	write_name(stream, get_measure_words(annotation));
	fprintf(stream, ": %s in it", to_text(annotation, function->self).text);
	fprintf(stream, " (%s of all)",
		quantity_from_share(function->self, annotation->whole).text);
	fprintf(stream, ", %s with what it called", to_text(annotation, function->total).text);
	fprintf(stream, " (%s)\n", quantity_from_share(function->total, annotation->whole).text);
	if (annotation->waiting_for_cpu != 0)
		fprintf(stream,
			"  %s of the latter it waited for a CPU, which is in no line's self\n",
			to_text(annotation, annotation->waiting_for_cpu).text);
}

/* What a function has that has neither lines nor instructions. */
static const char *find_reason_without_code(const struct annotation *annotation)
{
	const struct model_frame *frame = &annotation->session->frames[annotation->function.frame];

	if (annotation->function.self == 0 && frame->module != MODEL_ENTRY_INDEX_NONE)
		return "nothing of this measure was spent in its own instructions";
	switch (frame->kind) {
	case FRAME_JIT:
		return "made while the program ran: it is in no file";
	case FRAME_DEVICE_WORK:
		return "work of a device: kymo records when it ran, not its instructions";
	case FRAME_SYNTHETIC:
	case FRAME_THREAD_STATE:
		return "made by kymo: it stands for time that has no code";
	case FRAME_UNRESOLVED:
		return "no symbol says where the function begins and ends (--debug-path names "
		       "directories with debug files)";
	case FRAME_INTERPRETED:
		return "interpreted: its instructions are those of the interpreter";
	default:
		return frame->module == MODEL_ENTRY_INDEX_NONE
			       ? "in no file"
			       : "no sample stands at an instruction of a file with a build ID";
	}
}

static const char *find_reason_without_line(const struct annotation *annotation)
{
	const struct model_frame *frame = &annotation->session->frames[annotation->function.frame];

	if (frame->kind == FRAME_DEVICE_WORK || frame->kind == FRAME_SYNTHETIC ||
	    frame->kind == FRAME_THREAD_STATE || frame->kind == FRAME_JIT)
		return find_reason_without_code(annotation);
	return annotation->self_without_line != 0 ? "no debug information says which"
						  : "nothing of this measure is in its lines";
}

/* ---- source ---- */

static void write_source_text(const struct annotation *annotation, FILE *stream, const char *text,
			      size_t used)
{
	char expanded[LINE_BYTES];
	size_t size = 0, columns = annotation->options->columns;

	for (; *text != 0 && size + TAB_STOP + 1 < sizeof(expanded); text++) {
		if (*text != '\t') {
			expanded[size++] = *text;
			continue;
		}
		do
			expanded[size++] = ' ';
		while (size % TAB_STOP != 0);
	}
	expanded[size] = 0;
	fputs("  ", stream);
	if (columns > used)
		format_write_cut_to_width(stream, expanded, columns - used);
	else
		format_write_printable_text(stream, expanded, size);
}

static void write_source(const struct annotation *annotation, FILE *stream,
			 const struct annotated_source *source)
{
	fputs("\nSource  ", stream);
	write_name(stream, source->found != NULL ? source->found : source->path);
	putc('\n', stream);
	if (source->problem != NULL) {
		fputs("  ", stream);
		write_name(stream, source->problem);
		putc('\n', stream);
	}
	fputs("      self    share      total    line\n", stream);
	for (size_t i = 0; i < source->count; i++) {
		const struct annotated_line *line = &source->lines[i];
		if (line->follows_gap)
			fprintf(stream, "%38s\n", "...");
		write_self(annotation, stream, line->self);
		putc(' ', stream);
		write_value(annotation, stream, line->total);
		fprintf(stream, " %7" PRIu32, line->number);
		if (line->text != NULL && line->text[0] != 0)
			write_source_text(annotation, stream, line->text, 39);
		putc('\n', stream);
	}
}

static void write_sources(const struct annotation *annotation, FILE *stream)
{
	for (size_t i = 0; i < annotation->source_count; i++)
		write_source(annotation, stream, &annotation->sources[i]);
	if (annotation->self_without_line == 0 && annotation->source_count != 0)
		return;
	if (annotation->source_count == 0)
		fputs("\nSource\n", stream);
	write_self(annotation, stream, annotation->self_without_line);
	fprintf(stream, "  has no line: %s\n", find_reason_without_line(annotation));
}

/* ---- instructions ---- */

/* Whose instruction it is, and its line. */
static void write_place(const struct annotation *annotation, FILE *stream, uint32_t index)
{
	const struct model_frame *frame = &annotation->session->frames[index];

	fputs("  ; ", stream);
	if (frame->function_id != annotation->function.function_id) {
		write_name(stream, frame->function);
		putc(' ', stream);
	}
	if (frame->file != NULL && frame->line != 0) {
		write_name(stream, format_find_source_name(frame->file));
		fprintf(stream, ":%" PRIu32, frame->line);
	}
}

static void write_code(const struct annotation *annotation, FILE *stream,
		       const struct annotated_code *code)
{
	fputs("\nInstructions", stream);
	if (code->symbol != NULL) {
		fputs(" of ", stream);
		write_name(stream, code->symbol);
	}
	fputs("  ", stream);
	write_name(stream, code->path);
	putc('\n', stream);
	if (code->problem != NULL) {
		write_self(annotation, stream, code->self);
		fputs("  ", stream);
		write_name(stream, code->problem);
		putc('\n', stream);
		return;
	}
	fputs("      self    share  + inlined   address\n", stream);
	for (size_t i = 0; i < code->count; i++) {
		const struct annotated_instruction *instruction = &code->instructions[i];
		if (instruction->follows_gap)
			fprintf(stream, "%40s\n", "...");
		write_self(annotation, stream, instruction->self);
		putc(' ', stream);
		write_value(annotation, stream, instruction->with_inlined);
		fprintf(stream, " %9" PRIx64 "  %s", instruction->address, instruction->text);
		if (instruction->frame != MODEL_ENTRY_INDEX_NONE)
			write_place(annotation, stream, instruction->frame);
		putc('\n', stream);
	}
}

static void write_codes(const struct annotation *annotation, FILE *stream)
{
	uint64_t said = 0; /* beside the reason of each part */

	for (size_t i = 0; i < annotation->code_count; i++) {
		write_code(annotation, stream, &annotation->codes[i]);
		said += annotation->codes[i].problem != NULL ? annotation->codes[i].self : 0;
	}
	if (annotation->code_count == 0) {
		fputs("\nInstructions\n", stream);
		write_self(annotation, stream, annotation->self_without_address);
		fprintf(stream, "  %s\n", find_reason_without_code(annotation));
	} else if (annotation->self_without_address > said) {
		write_self(annotation, stream, annotation->self_without_address - said);
		fputs("  is at no instruction that is shown\n", stream);
	}
}

void annotation_write_text(const struct annotation *annotation, FILE *stream)
{
	write_head(annotation, stream);
	if (annotation->options->wants_source)
		write_sources(annotation, stream);
	if (annotation->options->wants_assembly)
		write_codes(annotation, stream);
}
