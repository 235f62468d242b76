/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * memory.json: every allocation site of every process with its stack, the most bytes first, and
 * what of it was not freed.
 */
#include "output/json/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "output/json_writer.h"
#include "output/output.h"

#define POINTS_MAX 1000

void memory_compute_process_sums(const struct session *session, uint32_t process,
				 struct memory_process_sums *ret)
{
	const struct model_allocations *allocations = session_get_allocations(session);

	*ret = (struct memory_process_sums){0};
	for (uint32_t i = 0; i < session_get_allocation_site_count(session); i++) {
		const struct model_allocation_site *site = &allocations->sites[i];

		if (site->process != process)
			continue;
		if (ret->site_count++ == 0)
			ret->first_site_index = i;
		ret->allocations += site->allocations;
		ret->allocated_bytes += site->allocated_bytes;
		ret->temporary_allocations += site->temporary_allocations;
		if (site->address_count == 0) {
			ret->unknown_free_count += site->frees;
			ret->uncounted_allocations += site->allocations;
			continue;
		}
		ret->frees += site->frees;
		ret->freed_bytes += site->freed_bytes;
		ret->live_block_count += allocation_site_count_live_blocks(site);
		ret->live_bytes += allocation_site_get_live_bytes(site);
	}
}

static bool is_frame_in_cxx_allocator(const struct model_allocation_frame *frame)
{
	static const char *const prefixes[] = {"operator new", "std::allocator",
					       "__gnu_cxx::new_allocator", "std::__new_allocator",
					       "std::allocator_traits"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(frame->function, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

/* What libc allocates for its caller (getline, opendir) is the caller's. */
static bool is_frame_in_libc(const struct model_allocation_frame *frame)
{
	return frame->module && (strncmp(frame->module, "libc.so", 7) == 0 ||
				 strncmp(frame->module, "libc-2.", 7) == 0);
}

/* The frame that a site is called after: the user's own code, as far as one can tell. What an
 * interpreter allocates is for the line that it executes. */
static const struct model_allocation_frame *
find_frame_for_label(const struct model_allocation_site *site)
{
	const struct model_allocation_frame *frame = site->frames;
	const struct model_allocation_frame *end = frame + site->frame_count;

	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i].interpreted)
			return &site->frames[i];
	}
	while (frame + 1 < end && (is_frame_in_cxx_allocator(frame) || is_frame_in_libc(frame)))
		frame++;
	return frame;
}

void memory_format_site_label(char *buffer, size_t size, const struct model_allocation_site *site)
{
	const struct model_allocation_frame *frame = find_frame_for_label(site);

	if (site->frame_count == 0) {
		snprintf(buffer, size, "(elsewhere)");
	} else if (frame->file && frame->line) {
		const char *slash = strrchr(frame->file, '/');

		snprintf(buffer, size, "%s (%s:%u)", frame->function,
			 slash ? slash + 1 : frame->file, frame->line);
	} else if (frame->module && frame->function[0] != '[') {
		snprintf(buffer, size, "%s (%s)", frame->function, frame->module);
	} else {
		snprintf(buffer, size, "%s", frame->function);
	}
}

static void json_put_allocation_site(struct json_writer *json,
				     const struct model_process_allocations *process,
				     const struct model_allocation_site *site)
{
	json_object_begin(json, NULL);
	json_put_count(json, "allocations", site->allocations);
	json_put_count(json, "frees", site->frees);
	json_put_count(json, "allocated_bytes", site->allocated_bytes);
	json_put_count(json, "freed_bytes", site->freed_bytes);
	json_put_count(json, "temporary_allocations", site->temporary_allocations);
	json_put_count(json, "peak_bytes", site->peak_bytes);
	if (process && process->has_holders_at_peak)
		json_put_count(json, "bytes_at_process_peak", site->bytes_at_process_peak);
	json_put_count(json, "live_blocks", allocation_site_count_live_blocks(site));
	json_put_count(json, "live_bytes", allocation_site_get_live_bytes(site));
	json_array_begin(json, "frames");
	for (uint32_t i = 0; i < site->frame_count; i++) {
		const struct model_allocation_frame *frame = &site->frames[i];

		json_object_begin(json, NULL);
		json_put_text(json, "function", frame->function);
		json_put_text(json, "file", frame->file);
		json_put_count(json, "line", frame->line);
		json_put_text(json, "module", frame->module);
		json_put_boolean(json, "inlined", frame->inlined);
		if (frame->interpreted)
			json_put_boolean(json, "interpreted", true);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void json_put_size_histogram(struct json_writer *json,
				    const struct model_process_allocations *process)
{
	json_array_begin(json, "sizes");
	for (uint32_t i = 0; i < MODEL_ALLOCATION_SIZE_CLASS_COUNT; i++) {
		if (!process->size_classes[i])
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "up_to_bytes", 1ull << i);
		json_put_count(json, "allocations", process->size_classes[i]);
		json_object_end(json);
	}
	json_array_end(json);
}

static uint64_t get_time_since_start(const struct session *session, uint64_t time_ns)
{
	return time_ns > session->start_ns ? time_ns - session->start_ns : 0;
}

/* Long runs have more points than anybody looks at. Of those that are left out for one, the one
 * with the most live bytes is kept. */
static void json_put_points(struct json_writer *json, const struct session *session,
			    const struct model_process_allocations *process)
{
	size_t step = process->point_count / POINTS_MAX + 1;

	json_array_begin(json, "over_time");
	for (size_t i = 0; i < process->point_count; i += step) {
		const struct model_allocation_point *point = &process->points[i];

		for (size_t j = i; j < i + step && j < process->point_count; j++) {
			if (process->points[j].live_bytes > point->live_bytes)
				point = &process->points[j];
		}
		json_object_begin(json, NULL);
		json_put_count(json, "time_ns", get_time_since_start(session, point->time_ns));
		json_put_count(json, "allocations", point->allocations);
		json_put_count(json, "frees", point->frees);
		json_put_count(json, "live_bytes", point->live_bytes);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_process_totals(struct json_writer *json, const struct session *session,
				    const struct model_process_allocations *process)
{
	json_put_count(json, "peak_bytes", process->peak_bytes);
	if (process->peak_ns)
		json_put_count(json, "peak_time_ns",
			       get_time_since_start(session, process->peak_ns));
	else
		json_put_null(json, "peak_time_ns");
	json_put_boolean(json, "complete", process->is_complete);
	json_put_size_histogram(json, process);
	json_put_points(json, session, process);
}

static void json_put_process_allocations(struct json_writer *json, const struct session *session,
					 uint32_t index)
{
	const struct model_process *process = &session->processes[index];
	const struct model_process_allocations *allocations =
		session_get_process_allocations(session, index);
	struct memory_process_sums sums;

	memory_compute_process_sums(session, index, &sums);
	if (!sums.site_count)
		return;
	json_object_begin(json, NULL);
	json_put_count(json, "pid", process->pid);
	json_put_count(json, "image", process->image);
	json_put_text(json, "name", process->name);
	json_put_count(json, "allocations", sums.allocations);
	json_put_count(json, "frees", sums.frees);
	json_put_count(json, "allocated_bytes", sums.allocated_bytes);
	json_put_count(json, "freed_bytes", sums.freed_bytes);
	json_put_count(json, "live_blocks", sums.live_block_count);
	json_put_count(json, "live_bytes", sums.live_bytes);
	json_put_count(json, "unknown_frees", sums.unknown_free_count);
	json_put_count(json, "uncounted_allocations", sums.uncounted_allocations);
	json_put_count(json, "temporary_allocations", sums.temporary_allocations);
	if (allocations && allocations->has_totals)
		json_put_process_totals(json, session, allocations);
	json_array_begin(json, "sites");
	for (uint32_t i = 0; i < sums.site_count; i++) {
		const struct model_allocation_site *site =
			&session_get_allocations(session)->sites[sums.first_site_index + i];

		if (site->address_count)
			json_put_allocation_site(json, allocations, site);
	}
	json_array_end(json);
	json_object_end(json);
}

static int output_write_memory_json(struct session *session, const struct output_options *options,
				    FILE *stream, struct problem *problem)
{
	struct json_writer json;

	(void)options;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_count(&json, "version", 1);
	json_array_begin(&json, "processes");
	for (uint32_t i = 0; i < session->process_count; i++)
		json_put_process_allocations(&json, session, i);
	json_array_end(&json);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}

const struct output_format output_format_memory = {
	.name = "memory",
	.file_name = "memory.json",
	.description = "allocation sites and blocks not freed, with TRACE_MEMORY",
	.write = output_write_memory_json,
};
