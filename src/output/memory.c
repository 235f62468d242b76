/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * memory.json: every allocation site of every process with its stack, the most bytes first, and
 * what of it was not freed.
 */
#include "output/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/json_writer.h"
#include "output/writers.h"

void memory_sum(const struct session *session, uint32_t process, struct memory_sums *ret)
{
	const struct model_allocations *allocations = session->allocations;

	*ret = (struct memory_sums){0};
	for (uint32_t i = 0; i < session_site_count(session); i++) {
		const struct model_site *site = &allocations->sites[i];

		if (site->process != process)
			continue;
		if (ret->site_count++ == 0)
			ret->first_site = i;
		ret->allocations += site->allocations;
		ret->allocated_bytes += site->allocated_bytes;
		if (site->address_count == 0) {
			ret->unknown_frees += site->frees;
			ret->uncounted += site->allocations;
			continue;
		}
		ret->frees += site->frees;
		ret->freed_bytes += site->freed_bytes;
		ret->live_blocks += site_live_blocks(site);
		ret->live_bytes += site_live_bytes(site);
	}
}

static bool is_allocator(const struct model_site_frame *frame)
{
	static const char *const prefixes[] = {"operator new", "std::allocator",
					       "__gnu_cxx::new_allocator", "std::__new_allocator",
					       "std::allocator_traits"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (strncmp(frame->function, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

void memory_label(char *buffer, size_t size, const struct model_site *site)
{
	const struct model_site_frame *frame = site->frames;
	const struct model_site_frame *end = frame + site->frame_count;

	while (frame + 1 < end && is_allocator(frame))
		frame++;
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

static void put_site(struct json_writer *json, const struct model_site *site)
{
	json_object_begin(json, NULL);
	json_put_count(json, "allocations", site->allocations);
	json_put_count(json, "frees", site->frees);
	json_put_count(json, "allocated_bytes", site->allocated_bytes);
	json_put_count(json, "freed_bytes", site->freed_bytes);
	json_put_count(json, "peak_bytes", site->peak_bytes);
	json_put_count(json, "live_blocks", site_live_blocks(site));
	json_put_count(json, "live_bytes", site_live_bytes(site));
	json_array_begin(json, "frames");
	for (uint32_t i = 0; i < site->frame_count; i++) {
		const struct model_site_frame *frame = &site->frames[i];

		json_object_begin(json, NULL);
		json_put_text(json, "function", frame->function);
		json_put_text(json, "file", frame->file);
		json_put_count(json, "line", frame->line);
		json_put_text(json, "module", frame->module);
		json_put_boolean(json, "inlined", frame->inlined);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void put_process(struct json_writer *json, const struct session *session, uint32_t index)
{
	const struct model_process *process = &session->processes[index];
	struct memory_sums sums;

	memory_sum(session, index, &sums);
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
	json_put_count(json, "live_blocks", sums.live_blocks);
	json_put_count(json, "live_bytes", sums.live_bytes);
	json_put_count(json, "unknown_frees", sums.unknown_frees);
	json_put_count(json, "uncounted_allocations", sums.uncounted);
	json_array_begin(json, "sites");
	for (uint32_t i = 0; i < sums.site_count; i++) {
		const struct model_site *site = &session->allocations->sites[sums.first_site + i];

		if (site->address_count)
			put_site(json, site);
	}
	json_array_end(json);
	json_object_end(json);
}

int output_memory(struct session *session, const struct output_options *options, FILE *stream,
		  struct problem *problem)
{
	struct json_writer json;

	(void)options;
	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_count(&json, "version", 1);
	json_array_begin(&json, "processes");
	for (uint32_t i = 0; i < session->process_count; i++)
		put_process(&json, session, i);
	json_array_end(&json);
	json_object_end(&json);
	return json_writer_finish(&json, problem);
}
