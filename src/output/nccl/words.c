/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Words and lines of the outputs about NCCL; see nccl.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "common/utf8.h"
#include "output/nccl/nccl.h"

#define LINE_COLUMNS_MAX 100

int nccl_require_records(const struct session *session, struct problem *problem)
{
	return session_get_nccl_data(session)
		       ? 0
		       : problem_set(problem, -ENODATA,
				     "'%s' has no NCCL records: run the program with "
				     "NCCL_PROFILER_PLUGIN=kymo",
				     session->directory);
}

struct nccl_channel_list_text nccl_channel_bitmap_to_text(uint64_t bitmap)
{
	struct nccl_channel_list_text channels = {.text = "none"};
	size_t used = 0;

	for (unsigned i = 0; i < 64; i++) {
		unsigned last = i;

		if (!(bitmap >> i & 1))
			continue;
		while (last < 63 && (bitmap >> (last + 1) & 1))
			last++;
		used += (size_t)snprintf(channels.text + used, sizeof(channels.text) - used,
					 last > i ? "%s%u-%u" : "%s%u", used ? "," : "", i, last);
		i = last;
	}
	return channels;
}

struct nccl_label_text nccl_format_communicator_label(const struct nccl_data *data,
						      uint32_t communicator)
{
	const struct nccl_communicator *of = &data->communicators[communicator];
	struct nccl_label_text label;
	char name[64];

	utf8_copy_printable(of->name, strlen(of->name), name, sizeof(name));
	if (*name && of->same_hash_index)
		snprintf(label.text, sizeof(label.text), "\"%s\" (%u)", name,
			 of->same_hash_index + 1);
	else if (*name)
		snprintf(label.text, sizeof(label.text), "\"%s\"", name);
	else if (of->hash)
		snprintf(label.text, sizeof(label.text), "0x%" PRIx64, of->hash);
	else
		snprintf(label.text, sizeof(label.text), "without a name");
	return label;
}

bool nccl_communicator_counts_as_job(const struct nccl_data *data, uint32_t communicator)
{
	const struct nccl_communicator *of = &data->communicators[communicator];

	if (communicator != data->widest_communicator && of->rank_count != data->job_size)
		return false;
	for (uint32_t i = 0; i < of->member_count; i++) {
		const struct nccl_communicator_rank *member = &data->members[of->members[i]];

		if (member->job_rank >= 0 && member->job_rank != member->rank)
			return false;
	}
	return true;
}

/* Without quotes, as a part of names of ranks. */
static struct nccl_label_text format_bare_communicator_name(const struct nccl_communicator *of)
{
	struct nccl_label_text label;

	utf8_copy_printable(of->name, strlen(of->name), label.text, 40);
	if (!*label.text)
		snprintf(label.text, sizeof(label.text), "0x%" PRIx64, of->hash);
	return label;
}

struct nccl_label_text nccl_format_rank_label(const struct nccl_data *data, uint32_t index)
{
	const struct nccl_communicator_rank *member = &data->members[index];
	struct nccl_label_text name = format_bare_communicator_name(
				       &data->communicators[member->communicator]),
			       label;

	if (member->job_rank < 0)
		snprintf(label.text, sizeof(label.text), "rank %d of %.40s", member->rank,
			 name.text);
	else if (nccl_communicator_counts_as_job(data, member->communicator))
		snprintf(label.text, sizeof(label.text), "rank %d", member->rank);
	else
		snprintf(label.text, sizeof(label.text), "rank %d of the job (%d of %.40s)",
			 member->job_rank, member->rank, name.text);
	return label;
}

struct nccl_label_text nccl_format_peer_label(const struct nccl_data *data, uint32_t communicator,
					      int32_t rank)
{
	const struct nccl_communicator *of = &data->communicators[communicator];
	struct nccl_label_text label;

	for (uint32_t i = 0; i < of->member_count; i++) {
		if (data->members[of->members[i]].rank == rank)
			return nccl_format_rank_label(data, of->members[i]);
	}
	if (nccl_communicator_counts_as_job(data, communicator))
		snprintf(label.text, sizeof(label.text), "rank %d", rank);
	else
		snprintf(label.text, sizeof(label.text), "rank %d of %.40s", rank,
			 format_bare_communicator_name(of).text);
	return label;
}

struct nccl_label_text nccl_format_job_rank_label(const struct nccl_data *data, uint32_t job_rank)
{
	const struct nccl_job_rank *rank = &data->job_ranks[job_rank];
	struct nccl_label_text label;

	if (rank->rank >= 0)
		snprintf(label.text, sizeof(label.text), "rank %d", rank->rank);
	else if (rank->first_member != NCCL_INDEX_NONE)
		return nccl_format_rank_label(data, rank->first_member);
	else
		snprintf(label.text, sizeof(label.text), "a process without communicators");
	return label;
}

struct nccl_label_text nccl_format_operation_label(const struct nccl_data *data, uint32_t function,
						   const struct nccl_operation *operation)
{
	struct nccl_label_text label;
	const char *function_name = data->functions[function].name;
	char name[40];

	utf8_copy_printable(function_name, strlen(function_name), name, sizeof(name));
	if (operation->kind == NCCL_KIND_P2P)
		snprintf(label.text, sizeof(label.text), "%s #%" PRIu64 " %s rank %d", name,
			 operation->sequence,
			 data->functions[function].function == NCCL_FUNCTION_RECV ? "from" : "to",
			 operation->peer);
	else
		snprintf(label.text, sizeof(label.text), "%s #%" PRIu64, name, operation->sequence);
	return label;
}

void nccl_print_wrapped_line(FILE *stream, unsigned indent, const char *format, ...)
{
	char text[2048];
	size_t column = 0;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (const char *word = text; *word;) {
		size_t size = strcspn(word, " "), width;
		char copy[512];

		snprintf(copy, sizeof(copy), "%.*s", (int)size, word);
		width = format_count_text_columns(copy);
		if (column == 0) {
			column = (size_t)fprintf(stream, "%*s", (int)indent, "");
		} else if (column + 1 + width > LINE_COLUMNS_MAX) {
			fprintf(stream, "\n%*s", (int)indent + 2, "");
			column = indent + 2;
		} else {
			fputc(' ', stream);
			column++;
		}
		column += format_write_cut_to_width(stream, copy, LINE_COLUMNS_MAX);
		word += size;
		word += strspn(word, " ");
	}
	fputc('\n', stream);
}
