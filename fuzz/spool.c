/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Any bytes as a spool file: both passes over it, all views, and the outputs for text.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/session.h"
#include "analysis/views.h"
#include "output/output.h"

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

/* What must hold whatever the file says. */
static void check_nodes(const struct session *session)
{
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_node *node = &session->nodes[i];
		const struct model_frame *frame = &session->frames[node->frame];

		if (node->frame >= session->frame_count ||
		    (node->parent != MODEL_NONE && node->parent >= i) ||
		    (frame->module != MODEL_NONE && frame->module >= session->module_count) ||
		    frame->function_id >= session->function_count)
			abort();
	}
}

static void write_outputs(struct session *session, FILE *stream)
{
	struct output_options options = {.per_thread = true};
	struct problem problem;

	output_find("text")->write(session, &options, stream, &problem);
	output_find("json")->write(session, &options, stream, &problem);
	output_metadata(session, stream, &problem);
	output_summary(session, &options, stream, true, &problem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct session_options options = {.unresolved_only = true, .symbol_cache = ""};
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
	    session_each_sample(session, check_sample, session, &problem) < 0)
		abort();
	check_nodes(session);
	write_outputs(session, null);
	session_close(session);
	return 0;
}
