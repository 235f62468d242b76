/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Any bytes as a spool file: both passes over it, all views, and the outputs for text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "analysis/regions/regions.h"
#include "analysis/views.h"
#include "output/formats/formats.h"
#include "output/json/metadata.h"
#include "output/output.h"
#include "output/summary/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/tmp/kymo-fuzz-XXXXXX";
static char spool[64], file_name[96];

static void remove_directory(void)
{
	unlink(file_name);
	rmdir(spool);
	rmdir(directory);
}

static void make_directory(void)
{
	if (!mkdtemp(directory))
		abort();
	snprintf(spool, sizeof(spool), "%s/spool", directory);
	snprintf(file_name, sizeof(file_name), "%s/1-0.spool", spool);
	if (mkdir(spool, 0700) != 0)
		abort();
	atexit(remove_directory);
}

static int check_sample(const struct model_sample *sample, void *context)
{
	const struct session *session = context;

	if (sample->node >= session->node_count || sample->thread >= session->thread_count)
		abort();
	return 0;
}

/* Open regions of a thread, as a consumer of events counts them. */
struct balance {
	const struct session *session;
	uint32_t thread;
	uint64_t last_ns;
	uint32_t open; /* of all regions together */
};

static int check_event(const struct model_region_event *event, void *context)
{
	struct balance *balance = context;
	const struct model_regions *regions = session_get_regions(balance->session);

	if (event->region >= regions->region_count ||
	    regions->regions[event->region].process != event->process ||
	    event->thread >= balance->session->thread_count)
		abort();
	if (event->thread != balance->thread) {
		if (balance->open)
			abort();
		balance->thread = event->thread;
		balance->last_ns = 0;
	}
	if (event->time_ns < balance->last_ns || event->duration_ns > event->time_ns)
		abort();
	balance->last_ns = event->time_ns;
	if (event->kind == MODEL_EVENT_REGION_BEGIN)
		balance->open++;
	else if (event->kind == MODEL_EVENT_REGION_END && balance->open-- == 0)
		abort();
	for (uint32_t i = 0; i < event->value_count; i++) {
		if (event->values[i].type == SPOOL_VALUE_TEXT &&
		    strlen(event->values[i].text) > SIZE_MAX / 2)
			abort();
	}
	return 0;
}

static void check_regions(struct session *session)
{
	struct balance balance = {.session = session, .thread = MODEL_ENTRY_INDEX_NONE};
	const struct model_regions *regions = session_get_regions(session);
	struct problem problem;

	if (session_visit_region_events(session, check_event, &balance, &problem) < 0 ||
	    balance.open)
		abort();
	for (uint32_t i = 0; i < regions->node_count; i++) {
		const struct model_region_node *node = &regions->nodes[i];

		if ((node->parent != MODEL_ENTRY_INDEX_NONE && node->parent >= i) ||
		    node->region >= regions->region_count || node->thread >= session->thread_count)
			abort();
	}
}

/* What must hold whatever the file says. */
static void check_nodes(const struct session *session)
{
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];
		const struct model_frame *frame = &session->frames[node->frame];

		if (node->frame >= session->frame_count ||
		    (node->parent != MODEL_ENTRY_INDEX_NONE && node->parent >= i) ||
		    (frame->module != MODEL_ENTRY_INDEX_NONE &&
		     frame->module >= session->module_count) ||
		    frame->function_id >= session->function_count)
			abort();
	}
}

static void write_outputs(struct session *session, FILE *stream)
{
	struct output_options options = {.per_thread = true};
	struct problem problem;

	output_find_format("text")->write(session, &options, stream, &problem);
	output_find_format("json")->write(session, &options, stream, &problem);
	output_write_metadata_json(session, stream, &problem);
	output_write_summary(session, &options, stream, true, &problem);
	output_find_format("perfetto")->write(session, &options, stream, &problem);
	options.flat = options.collapse_processes = true;
	output_find_format("text")->write(session, &options, stream, &problem);
	options.is_timeline_wanted = true;
	output_find_format("text")->write(session, &options, stream, &problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct session_options options = {.skip_symbolizing = true, .symbol_cache_directory = ""};
	struct session *session;
	struct problem problem;
	FILE *file;

	if (!null) {
		null = fopen("/dev/null", "w");
		make_directory();
	}
	file = fopen(file_name, "w");
	if (!null || !file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		abort();
	if (session_open(directory, &options, &session, &problem) < 0)
		abort();
	if (session_symbolize(session, &problem) < 0 ||
	    session_visit_samples(session, check_sample, session, &problem) < 0)
		abort();
	check_nodes(session);
	check_regions(session);
	write_outputs(session, null);
	session_close(session);
	return 0;
}
