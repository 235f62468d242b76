/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a region costs in the Perfetto trace: bytes and nanoseconds for each begin or end, plain and
 * compressed. Events of two threads, 300 functions with source lines that call each other up to 20
 * deep (tests/unit/output/regions_fixture.c).
 *
 *   bench/trace_regions [millions of events]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "output/output.h"
#include "regions_fixture.h"
#include "session_fixture.h"

static double cpu_seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static ssize_t count_bytes(void *count, const char *bytes, size_t size)
{
	(void)bytes;
	*(uint64_t *)count += size;
	return (ssize_t)size;
}

extern const struct output_format output_format_perfetto;

static uint64_t written(uint64_t events, bool compress, double *seconds)
{
	struct session *session = fixture_session();
	struct output_options options = {.is_compressed = compress};
	struct problem problem;
	uint64_t bytes = 0;
	FILE *stream = fopencookie(&bytes, "w", (cookie_io_functions_t){.write = count_bytes});

	if (events != 0)
		fixture_add_regions(session, events);
	*seconds = cpu_seconds();
	if (stream == NULL ||
	    output_format_perfetto.write(session, &options, stream, &problem) != 0)
		exit(1);
	*seconds = cpu_seconds() - *seconds;
	fclose(stream);
	return bytes;
}

int main(int argc, char **argv)
{
	uint64_t events = (argc > 1 ? strtoull(argv[1], NULL, 10) : 4) * 1000000;

	for (int compress = 0; compress <= 1; compress++) {
		double none, all;
		uint64_t bytes = written(0, compress, &none);

		bytes = written(events, compress, &all) - bytes;
		printf("%-10s %5.1f bytes  %5.1f ns a begin or end\n",
		       compress ? "compressed" : "plain", (double)bytes / (double)events,
		       (all - none) * 1e9 / (double)events);
	}
	return 0;
}
