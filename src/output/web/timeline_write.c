/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The timeline in the data of a page: tracks, and their slices as packed columns.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "output/web/parts.h"
#include "output/web/timeline.h"

struct sorted_slices {
	struct timeline_slice *slices;
	size_t count;
	uint64_t base_ns, end_ns;
};

/* What contains others comes before them. */
static int compare_slices(const void *left, const void *right)
{
	const struct timeline_slice *a = left, *b = right;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->duration_ns != b->duration_ns)
		return a->duration_ns > b->duration_ns ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static void append_store(struct sorted_slices *sorted, const struct timeline_store *store)
{
	for (uint32_t i = 0; i < store->count; i++)
		sorted->slices[sorted->count++] = store->slices[i];
	for (uint32_t i = 0; i < store->merged_count; i++)
		sorted->slices[sorted->count++] = store->merged[i];
}

/* Samples of a thread that were added up would overlap where stacks took turns: they stand one
 * behind the other instead. */
static void place_merged_samples(const struct timeline *timeline, struct sorted_slices *sorted)
{
	if (timeline->samples.span_ns == 0)
		return;
	for (size_t i = 1; i < sorted->count; i++) {
		struct timeline_slice *slice = &sorted->slices[i];
		const struct timeline_slice *before = slice - 1;
		uint64_t end_ns = before->start_ns + before->duration_ns;

		if (slice->track == before->track &&
		    timeline->tracks[slice->track].kind == TIMELINE_SAMPLES &&
		    slice->start_ns < end_ns)
			slice->start_ns = end_ns;
	}
}

static int sort_slices(const struct timeline *timeline, struct sorted_slices *ret)
{
	const struct timeline_store *samples = &timeline->samples, *spans = &timeline->spans;
	const struct session *session = timeline->page->session;
	size_t room = (size_t)samples->count + samples->merged_count + spans->count +
		      spans->merged_count + 1;
	struct sorted_slices sorted = {.slices = calloc(room, sizeof(*sorted.slices)),
				       .base_ns = session->process_count != 0 ? session->start_ns
									      : UINT64_MAX,
				       .end_ns = session->end_ns};

	if (sorted.slices == NULL)
		return -ENOMEM;
	append_store(&sorted, samples);
	append_store(&sorted, spans);
	if (sorted.count)
		qsort(sorted.slices, sorted.count, sizeof(*sorted.slices), compare_slices);
	place_merged_samples(timeline, &sorted);
	for (size_t i = 0; i < sorted.count; i++) {
		uint64_t end_ns = sorted.slices[i].start_ns + sorted.slices[i].duration_ns;
		if (sorted.slices[i].start_ns < sorted.base_ns)
			sorted.base_ns = sorted.slices[i].start_ns;
		if (end_ns > sorted.end_ns)
			sorted.end_ns = end_ns;
	}
	*ret = sorted;
	return 0;
}

static int64_t signed_index(uint32_t index)
{
	return index == MODEL_ENTRY_INDEX_NONE ? -1 : (int64_t)index;
}

static void write_tracks(const struct timeline *timeline, const struct sorted_slices *sorted)
{
	static const char *const kinds[TIMELINE_TRACK_KIND_COUNT] = {
		[TIMELINE_SAMPLES] = "samples",     [TIMELINE_REGIONS] = "regions",
		[TIMELINE_CALLS] = "calls",         [TIMELINE_MARKERS] = "markers",
		[TIMELINE_STEPS] = "steps",         [TIMELINE_KERNELS] = "kernels",
		[TIMELINE_COPIES] = "copies",       [TIMELINE_NCCL] = "nccl",
		[TIMELINE_NCCL_ENQUEUE] = "enqueue"};
	FILE *stream = timeline->page->stream;
	size_t at = 0;

	page_put_key(stream, "tracks");
	putc('[', stream);
	for (uint32_t i = 0; i < timeline->track_count; i++) {
		const struct timeline_track *track = &timeline->tracks[i];
		size_t first = at;
		while (at < sorted->count && sorted->slices[at].track == i)
			at++;
		page_put_comma_unless_first(stream, i);
		fprintf(stream,
			"{\"kind\":\"%s\",\"process\":%" PRId64 ",\"thread\":%" PRId64
			",\"name\":%" PRId64 ",\"owner\":%" PRId64 ",\"count\":%zu}",
			kinds[track->kind], signed_index(track->process),
			signed_index(track->thread), track->name, track->owner, at - first);
	}
	fputs("],", stream);
}

enum slice_column { COLUMN_START, COLUMN_DURATION, COLUMN_NAME, COLUMN_COUNT, SLICE_COLUMN_COUNT };

/* Starts are differences to the start before, of the same track. */
static void write_column(const struct timeline *timeline, const struct sorted_slices *sorted,
			 enum slice_column column)
{
	static const char *const names[SLICE_COLUMN_COUNT] = {"start", "duration", "name",
							      "number"};
	struct page_packer packer = {.stream = timeline->page->stream};

	page_put_key(packer.stream, names[column]);
	putc('"', packer.stream);
	for (size_t i = 0; i < sorted->count; i++) {
		const struct timeline_slice *slice = &sorted->slices[i];
		bool is_first = i == 0 || slice[-1].track != slice->track;

		if (column == COLUMN_START)
			page_pack_difference(&packer, slice->start_ns,
					     is_first ? sorted->base_ns : slice[-1].start_ns);
		else
			page_pack_number(&packer, column == COLUMN_DURATION ? slice->duration_ns
						  : column == COLUMN_NAME   ? slice->name
									    : slice->count);
	}
	page_pack_end(&packer);
	fputs("\",", packer.stream);
}

static void write_store_rule(FILE *stream, const char *key, const struct timeline_store *store)
{
	page_put_key(stream, key);
	fprintf(stream,
		"{\"merged\":%" PRIu64 ",\"entries\":%" PRIu32 ",\"length_ns\":%" PRIu64
		",\"span_ns\":%" PRIu64 "},",
		store->merged_slices, store->merged_count, store->length_ns, store->span_ns);
}

static int write_timeline(struct timeline *timeline)
{
	FILE *stream = timeline->page->stream;
	struct sorted_slices sorted;
	int error = sort_slices(timeline, &sorted);

	if (error != 0)
		return error;
	if (sorted.count != 0) {
		page_put_key(stream, "timeline");
		fprintf(stream,
			"{\"sources\":%d,\"offset_ns\":%" PRId64 ",\"duration_ns\":%" PRIu64 ",",
			MODEL_SOURCE_COUNT,
			(int64_t)sorted.base_ns - (int64_t)timeline->page->session->start_ns,
			sorted.end_ns - sorted.base_ns);
		write_tracks(timeline, &sorted);
		for (int column = 0; column < SLICE_COLUMN_COUNT; column++)
			write_column(timeline, &sorted, (enum slice_column)column);
		write_store_rule(stream, "samples", &timeline->samples);
		write_store_rule(stream, "spans", &timeline->spans);
		fprintf(stream, "\"other_threads\":%" PRIu64 "},",
			timeline->slices_of_other_threads);
	}
	free(sorted.slices);
	return 0;
}

int page_write_timeline(struct page_writer *page)
{
	struct timeline timeline = {.page = page};
	int error = timeline_collect_samples(&timeline);

	if (error == 0)
		error = timeline_collect_regions(&timeline);
	if (error == 0)
		error = timeline_collect_devices(&timeline);
	if (error == 0)
		error = timeline_collect_steps(&timeline);
	if (error == 0)
		error = timeline_collect_nccl(&timeline);
	if (error == 0)
		error = write_timeline(&timeline);
	timeline_deinit(&timeline);
	return error;
}
