/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A part file from anybody, through the merge to every file of a job. Its checksum is made right,
 * so that what it guards is tried as well.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/checksum.h"
#include "job/part.h"
#include "job/results/results.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_checksum(uint8_t *bytes, size_t size)
{
	struct job_part_header header;
	struct checksum_state sum = checksum_get_initial_state();
	size_t tables = size - sizeof(header);

	memcpy(&header, bytes, sizeof(header));
	header.checksum = 0;
	if (header.string_bytes <= tables)
		tables -= header.string_bytes;
	checksum_add_bytes(&sum, &header, sizeof(header));
	checksum_add_bytes(&sum, bytes + sizeof(header), tables);
	checksum_add_bytes(&sum, bytes + sizeof(header) + tables, size - sizeof(header) - tables);
	header.checksum = checksum_compute_final_value(&sum);
	memcpy(bytes, &header, sizeof(header));
}

static void write_all(struct job *job)
{
	struct problem problem;
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	if (!stream || job_sort(job) < 0)
		abort();
	for (size_t i = 0; i < JOB_FORMAT_COUNT; i++)
		(void)job_formats[i].write(job, 0, stream, &problem);
	fclose(stream);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct problem problem;
	struct job part, job;
	uint8_t *copy;

	if (size > 1u << 20)
		return 0;
	copy = malloc(size + 1);
	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (size >= sizeof(struct job_part_header))
		set_checksum(copy, size);
	job_init(&part);
	job_init(&job);
	if (!job_part_read(&part, copy, size, "part", &problem) &&
	    !job_merge(&job, &part, &problem))
		write_all(&job);
	job_deinit(&part);
	job_deinit(&job);
	free(copy);
	return 0;
}
