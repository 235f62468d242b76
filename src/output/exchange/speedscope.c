/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * speedscope's own file format, https://www.speedscope.app/file-format-schema.json: a profile a
 * thread, the heaviest first, with samples in order of time and weights of the measure.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/exchange/exchange.h"
#include "output/incomplete/incomplete.h"
#include "output/json_writer.h"

/* Each sample names all of its frames. */
#define SAMPLES_MAX 200000u
#define NAME_BYTES  512u

struct speedscope_writer {
	const struct session *session;
	struct json_writer json;
	enum view_measure_kind measure;
	uint32_t *number_of_key; /* by function, then frame: of its entry in the table of frames */
	uint32_t frame_count;
	uint32_t *path;
	struct timed_samples samples;
};

struct group_samples {
	uint32_t group;
	uint64_t weight;
	const struct timed_sample *samples;
	size_t count;
};

/* Functions are entries; of interpreted code, as in folded stacks, each line is one. */
static uint32_t get_key(const struct session *session, uint32_t frame)
{
	return session->frames[frame].kind == FRAME_INTERPRETED
		       ? session->function_count + frame
		       : session->frames[frame].function_id;
}

static void write_frames(struct speedscope_writer *writer)
{
	const struct session *session = writer->session;

	json_object_begin(&writer->json, "shared");
	json_array_begin(&writer->json, "frames");
	for (uint32_t i = 0; i < session->frame_count; i++) {
		const struct model_frame *frame = &session->frames[i];
		uint32_t *number = &writer->number_of_key[get_key(session, i)];
		uint32_t line =
			frame->kind == FRAME_INTERPRETED ? frame->line : frame->function_line;
		if (*number != 0)
			continue;
		*number = ++writer->frame_count;
		json_object_begin(&writer->json, NULL);
		json_put_text(&writer->json, "name", frame->function);
		if (frame->file != NULL)
			json_put_text(&writer->json, "file", frame->file);
		else if (frame->module != MODEL_ENTRY_INDEX_NONE)
			json_put_text(&writer->json, "file", session->modules[frame->module].path);
		if (frame->file != NULL && line != 0)
			json_put_count(&writer->json, "line", line);
		json_object_end(&writer->json);
	}
	json_array_end(&writer->json);
	json_object_end(&writer->json);
}

static void write_stack(struct speedscope_writer *writer, uint32_t node)
{
	const struct session *session = writer->session;
	uint32_t length = 0;

	for (; node != MODEL_ENTRY_INDEX_NONE; node = session->nodes[node].parent)
		writer->path[length++] = session->nodes[node].frame;
	json_array_begin(&writer->json, NULL);
	while (length-- > 0)
		json_put_count(&writer->json, NULL,
			       writer->number_of_key[get_key(session, writer->path[length])] - 1);
	json_array_end(&writer->json);
}

static void write_profile(struct speedscope_writer *writer, const struct group_samples *of)
{
	struct json_writer *json = &writer->json;
	char name[NAME_BYTES];

	timed_samples_format_group_name(name, sizeof(name), writer->session, of->group);
	json_object_begin(json, NULL);
	json_put_text(json, "type", "sampled");
	json_put_text(json, "name", name);
	json_put_text(json, "unit",
		      writer->measure == VIEW_MEASURE_COUNTER_EVENTS ? "none" : "nanoseconds");
	json_put_count(json, "startValue", 0);
	json_put_count(json, "endValue", of->weight);
	json_array_begin(json, "samples");
	for (size_t i = 0; i < of->count; i++)
		write_stack(writer, of->samples[i].node);
	json_array_end(json);
	json_array_begin(json, "weights");
	for (size_t i = 0; i < of->count; i++)
		json_put_count(json, NULL, of->samples[i].weight);
	json_array_end(json);
	json_object_end(json);
}

static int compare_groups_by_weight(const void *left, const void *right)
{
	const struct group_samples *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->group < b->group ? -1 : a->group > b->group;
}

static int write_profiles(struct speedscope_writer *writer)
{
	const struct timed_samples *samples = &writer->samples;
	struct group_samples *groups = calloc((size_t)samples->group_count + 1, sizeof(*groups));
	size_t count = 0;

	if (groups == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < samples->count; i++) {
		if (count == 0 || groups[count - 1].group != samples->samples[i].group)
			groups[count++] = (struct group_samples){.group = samples->samples[i].group,
								 .samples = &samples->samples[i]};
		groups[count - 1].count++;
		groups[count - 1].weight += samples->samples[i].weight;
	}
	qsort(groups, count, sizeof(*groups), compare_groups_by_weight);
	json_array_begin(&writer->json, "profiles");
	for (size_t i = 0; i < count; i++)
		write_profile(writer, &groups[i]);
	json_array_end(&writer->json);
	free(groups);
	return 0;
}

/* speedscope knows no notes: the name, which it shows, has what the file lacks. */
static void write_head(struct speedscope_writer *writer)
{
	const struct session *session = writer->session;
	char name[2 * NAME_BYTES], note[128] = "";

	if (writer->samples.span_ns != 0)
		snprintf(note, sizeof(note), "; samples within %" PRIu64 " ms are added up",
			 writer->samples.span_ns / 1000000);
	snprintf(name, sizeof(name), "%.400s, %s%s%s%s", session->command_line,
		 view_measure_get_name(writer->measure), note,
		 session->has_only_part_of_time ? "; the selected part of the run" : "",
		 incomplete_get_first(session, false).text[0] != 0 ? "; the result is not complete"
								   : "");
	json_put_text(&writer->json, "$schema",
		      "https://www.speedscope.app/file-format-schema.json");
	json_put_text(&writer->json, "exporter", "kymo@" KYMO_VERSION);
	json_put_text(&writer->json, "name", name);
	json_put_count(&writer->json, "activeProfileIndex", 0);
}

static int write_file(struct speedscope_writer *writer)
{
	const struct session *session = writer->session;
	uint32_t deepest = 0;

	for (uint32_t i = 0; i < session->node_count; i++) {
		if (session->nodes[i].depth > deepest)
			deepest = session->nodes[i].depth;
	}
	writer->path = calloc((size_t)deepest + 1, sizeof(*writer->path));
	writer->number_of_key = calloc((size_t)session->function_count + session->frame_count + 1,
				       sizeof(*writer->number_of_key));
	if (writer->path == NULL || writer->number_of_key == NULL)
		return -ENOMEM;
	json_object_begin(&writer->json, NULL);
	writer->json.compact_from_depth = 1; /* all of it: it is long */
	write_head(writer);
	write_frames(writer);
	int error = write_profiles(writer);
	json_object_end(&writer->json);
	return error;
}

static int output_write_speedscope(struct session *session, const struct output_options *options,
				   FILE *stream, struct problem *problem)
{
	struct speedscope_writer writer = {.session = session,
					   .measure = exchange_get_measure(session, options)};

	problem->text[0] = 0;
	json_writer_init(&writer.json, stream);
	int error =
		timed_samples_init(&writer.samples, session, writer.measure, SAMPLES_MAX, problem);
	if (error == 0)
		error = write_file(&writer);
	if (error == 0)
		error = json_writer_finish(&writer.json, problem);
	timed_samples_deinit(&writer.samples);
	free(writer.path);
	free(writer.number_of_key);
	return exchange_finish(stream, error, "the profile for speedscope", problem);
}

const struct output_format output_format_speedscope = {
	.name = "speedscope",
	.file_name = "profile.speedscope.json",
	.description = "speedscope's own format, a profile a thread",
	.write = output_write_speedscope,
};
