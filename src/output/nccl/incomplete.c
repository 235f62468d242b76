/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is not in the records, in lines that go before everything else: a rank without records may
 * be the one that all others wait for, so nothing may be concluded as if it were not there.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "output/nccl/nccl.h"

#define LINES_OF_A_KIND_MAX 6

struct line_sink {
	void (*write)(const char *line, void *context);
	void *context;
};

__attribute__((format(printf, 2, 3))) static void put_line(const struct line_sink *sink,
							   const char *format, ...)
{
	char line[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	sink->write(line, sink->context);
}

/* "3, 5-7": of numbers in order. */
static void format_numbers(const int32_t *numbers, size_t count, char *ret, size_t size)
{
	size_t used = 0;

	*ret = '\0';
	for (size_t i = 0; i < count; i++) {
		size_t last = i;

		if (used + 40 > size) {
			snprintf(ret + used, size - used, ", …");
			return;
		}
		while (last + 1 < count && numbers[last + 1] == numbers[last] + 1)
			last++;
		used += (size_t)snprintf(ret + used, size - used, last > i ? "%s%d-%d" : "%s%d",
					 used ? ", " : "", numbers[i], numbers[last]);
		i = last;
	}
}

static void put_missing_job_ranks(const struct nccl_data *data, const struct line_sink *sink)
{
	uint32_t missing = data->missing_job_rank_count;
	char ranks[400];

	if (!missing)
		return;
	format_numbers(data->missing_job_ranks, missing, ranks, sizeof(ranks));
	put_line(
		sink,
		"%u of %u ranks of the job have records here, rank%s %s %s no records. Who is late "
		"and how much of the time is waiting is not concluded for the collectives that "
		"%s part in.",
		data->job_size - missing, data->job_size, missing == 1 ? "" : "s", ranks,
		missing == 1 ? "has" : "have", missing == 1 ? "it takes" : "they take");
}

static void format_missing_members(const struct nccl_data *data,
				   const struct nccl_communicator *communicator, char *ret,
				   size_t size)
{
	int32_t missing[64];
	uint32_t next = 0, count = 0;

	for (int32_t rank = 0; rank < (int32_t)communicator->rank_count && count < 64; rank++) {
		while (next < communicator->member_count &&
		       data->members[communicator->members[next]].rank < rank)
			next++;
		if (next == communicator->member_count ||
		    data->members[communicator->members[next]].rank != rank)
			missing[count++] = rank;
	}
	format_numbers(missing, count, ret, size);
}

/* Where the ranks of the job are known, those of its communicators say no more. */
static void put_missing_members(const struct nccl_data *data, const struct line_sink *sink)
{
	unsigned lines = 0, left_out = 0;

	for (uint32_t i = 0; i < data->communicator_count && !data->missing_job_rank_count; i++) {
		const struct nccl_communicator *communicator = &data->communicators[i];
		char ranks[400];

		if (!communicator->missing_rank_count || communicator->is_rank_count_inferred)
			continue;
		if (lines++ >= LINES_OF_A_KIND_MAX) {
			left_out++;
			continue;
		}
		format_missing_members(data, communicator, ranks, sizeof(ranks));
		put_line(sink,
			 "%u of %u ranks of %s have records here, rank%s %s %s no records. Who is "
			 "late into its collectives is not concluded.",
			 communicator->rank_count - communicator->missing_rank_count,
			 communicator->rank_count, nccl_format_communicator_label(data, i).text,
			 communicator->missing_rank_count == 1 ? "" : "s", ranks,
			 communicator->missing_rank_count == 1 ? "has" : "have");
	}
	if (left_out)
		put_line(sink, "%u more communicators lack ranks.", left_out);
}

static void put_unreadable_files(const struct nccl_data *data, const struct line_sink *sink)
{
	if (data->unreadable_files)
		put_line(sink,
			 "%" PRIu64 " file%s of records could not be read; %s ranks are missing "
			 "here (see below).",
			 data->unreadable_files, data->unreadable_files == 1 ? "" : "s",
			 data->unreadable_files == 1 ? "its" : "their");
}

static void format_damage(const struct nccl_process *process, char *ret, size_t size)
{
	const struct nccl_file *file = &process->file;

	if (file->missing_bytes)
		snprintf(ret, size, "the file is cut off, %s of %s are missing",
			 quantity_from_bytes(file->missing_bytes).text,
			 quantity_from_bytes(file->header.file_size).text);
	else if (process->lost_operation_count)
		snprintf(ret, size, "%s records are damaged or were not written",
			 quantity_from_count(process->lost_operation_count).text);
	else
		snprintf(ret, size,
			 "the oldest %s operations are only in the sums (raise NCCL_SIZE to keep "
			 "more)",
			 quantity_from_count(process->overwritten_operation_count).text);
}

static void put_damaged_processes(const struct nccl_data *data, const struct line_sink *sink)
{
	unsigned lines = 0, left_out = 0;

	for (uint32_t i = 0; i < data->process_count; i++) {
		const struct nccl_process *process = &data->processes[i];
		char damage[256], rank[32] = "";

		if (!process->file.missing_bytes && !process->lost_operation_count &&
		    !process->overwritten_operation_count)
			continue;
		if (lines++ >= LINES_OF_A_KIND_MAX) {
			left_out++;
			continue;
		}
		format_damage(process, damage, sizeof(damage));
		if (process->rank >= 0)
			snprintf(rank, sizeof(rank), "rank %d, ", process->rank);
		put_line(sink,
			 "The records of %sprocess %u on %.60s are not complete: %s. Nothing is "
			 "concluded from collectives that are missing there.",
			 rank, process->file.header.pid, process->file.header.host, damage);
	}
	if (left_out)
		put_line(sink, "The records of %u more processes are not complete.", left_out);
}

void nccl_visit_incomplete_input_lines(const struct nccl_data *data,
				       void (*write)(const char *line, void *context),
				       void *context)
{
	struct line_sink sink = {write, context};

	put_unreadable_files(data, &sink);
	put_missing_job_ranks(data, &sink);
	put_missing_members(data, &sink);
	put_damaged_processes(data, &sink);
}
