/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Writes the fixture session in one format to stdout, for tests that read it with other tools:
 * write_fixture FORMAT [empty] [compress] [per_thread] [samples=N] [regions[=N]] [job]
 * [unknown_pid].
 */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "output/output.h"
#include "regions_fixture.h"
#include "session_fixture.h"

/* Those of the list that need no more than the fixture. */
extern const struct output_format output_format_perfetto, output_format_folded,
	output_format_regions_folded, output_format_pprof, output_format_html;

static const struct output_format *const formats[] = {
	&output_format_perfetto, &output_format_folded, &output_format_regions_folded,
	&output_format_pprof,    &output_format_html,
};

/* Two ranks on two hosts. */
static void make_job(struct session *session)
{
	session->processes[1].rank_count = 2;
	session->processes[2].rank = 1;
	session->processes[2].rank_count = 2;
	session->processes[2].host = "other";
}

int main(int argument_count, char **arguments)
{
	struct session *session = fixture_session();
	/* the fixture has all kinds of samples; the page opens with this one */
	struct output_options options = {.is_measure_given = true,
					 .measure = VIEW_MEASURE_CPU_TIME};
	struct problem problem = {""};

	for (int i = 2; i < argument_count; i++) {
		if (strcmp(arguments[i], "empty") == 0)
			session = fixture_empty_session();
		else if (strcmp(arguments[i], "compress") == 0)
			options.is_compressed = true;
		else if (strcmp(arguments[i], "per_thread") == 0)
			options.per_thread = true;
		else if (strncmp(arguments[i], "samples=", 8) == 0)
			fixture_repeat_samples(strtoull(arguments[i] + 8, NULL, 10));
		else if (strncmp(arguments[i], "regions=", 8) == 0)
			fixture_add_regions(session, strtoull(arguments[i] + 8, NULL, 10));
		else if (strcmp(arguments[i], "regions") == 0)
			fixture_add_regions(session, 0);
		else if (strcmp(arguments[i], "unknown_pid") == 0)
			session->processes[2].pid = 2001;
		else if (strcmp(arguments[i], "job") == 0)
			make_job(session);
	}
	for (size_t i = 0; argument_count > 1 && i < ARRAY_SIZE(formats); i++) {
		if (strcmp(formats[i]->name, arguments[1]) != 0)
			continue;
		if (formats[i]->write(session, &options, stdout, &problem) == 0)
			return 0;
		fprintf(stderr, "%s\n", problem.text);
		return 1;
	}
	fprintf(stderr, "usage: write_fixture FORMAT [empty] [compress] [per_thread] [samples=N] "
			"[regions[=N]] [job] [unknown_pid]\n");
	return 2;
}
