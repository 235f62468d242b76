/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A file of the NCCL plugin from anybody, through the whole model to every output about NCCL and
 * the trace: alone, and beside a second one that is nearly the same, so that ranks are joined.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/open/open.h"
#include "kymo/nccl_records.h"
#include "output/formats/formats.h"
#include "output/output.h"
#include "output/summary/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[64];

static void make_path(char *ret, size_t size, const char *name)
{
	snprintf(ret, size, "%s/%s", directory, name);
}

static void clean_up(void)
{
	char path[128];

	make_path(path, sizeof(path), "spool/a.nccl");
	unlink(path);
	make_path(path, sizeof(path), "spool/b.nccl");
	unlink(path);
	make_path(path, sizeof(path), "spool");
	rmdir(path);
	rmdir(directory);
}

static void make_directory(void)
{
	char path[128];

	if (*directory)
		return;
	snprintf(directory, sizeof(directory), "/tmp/kymo-fuzz-nccl-XXXXXX");
	if (!mkdtemp(directory))
		abort();
	make_path(path, sizeof(path), "spool");
	if (mkdir(path, 0700) != 0)
		abort();
	atexit(clean_up);
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
	char path[128];
	int file;

	make_path(path, sizeof(path), name);
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	close(file);
}

/* The same process on another host: with a clock and ids of its own it is another rank. */
static void write_other(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (size >= sizeof(struct nccl_file_header)) {
		struct nccl_file_header *header = (void *)copy;

		header->pid ^= 1;
		header->boot_id[0] ^= 1;
		header->clocks[0].boottime_ns += 12345;
	}
	write_file("spool/b.nccl", copy, size);
	free(copy);
}

static void write_all(void)
{
	struct output_options options = {.top = 3, .is_top_given = true};
	struct session_options session_options = {.skip_symbolizing = true};
	struct session *session;
	struct problem problem;
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	if (!stream)
		abort();
	if (session_open(directory, &session_options, &session, &problem) == 0) {
		for (size_t i = 0; i < output_format_count; i++) {
			if (!strncmp(output_formats[i]->name, "nccl", 4) ||
			    !strcmp(output_formats[i]->name, "perfetto"))
				(void)output_formats[i]->write(session, &options, stream, &problem);
		}
		(void)output_write_summary(session, &options, stream, false, &problem);
		session_close(session);
	}
	fclose(stream);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 4u << 20)
		return 0;
	make_directory();
	write_file("spool/a.nccl", data, size);
	write_other(data, size);
	write_all();
	return 0;
}
