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
#include "output/nccl.h"

#define LINE_WIDTH 100

int nccl_check(const struct session *session, struct problem *problem)
{
	return session->nccl ? 0
			     : problem_set(problem, -ENODATA,
					   "'%s' has no NCCL records: run the program with "
					   "NCCL_PROFILER_PLUGIN=kymo",
					   session->directory);
}

struct nccl_channels nccl_channels_text(uint64_t bitmap)
{
	struct nccl_channels channels = {.text = "none"};
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

struct nccl_label nccl_team_label(const struct nccl_data *data, uint32_t team)
{
	const struct nccl_team *of = &data->teams[team];
	struct nccl_label label;
	char name[64];

	utf8_printable(of->name, strlen(of->name), name, sizeof(name));
	if (*name && of->occurrence)
		snprintf(label.text, sizeof(label.text), "\"%s\" (%u)", name, of->occurrence + 1);
	else if (*name)
		snprintf(label.text, sizeof(label.text), "\"%s\"", name);
	else if (of->hash)
		snprintf(label.text, sizeof(label.text), "0x%" PRIx64, of->hash);
	else
		snprintf(label.text, sizeof(label.text), "without a name");
	return label;
}

struct nccl_label nccl_operation_label(const struct nccl_data *data, uint32_t function,
				       const struct nccl_operation *operation)
{
	struct nccl_label label;
	const char *function_name = data->functions[function].name;
	char name[40];

	utf8_printable(function_name, strlen(function_name), name, sizeof(name));
	if (operation->kind == NCCL_KIND_P2P)
		snprintf(label.text, sizeof(label.text), "%s #%" PRIu64 " %s rank %d", name,
			 operation->sequence,
			 data->functions[function].function == NCCL_FUNCTION_RECV ? "from" : "to",
			 operation->peer);
	else
		snprintf(label.text, sizeof(label.text), "%s #%" PRIu64, name, operation->sequence);
	return label;
}

void nccl_line(FILE *stream, unsigned indent, const char *format, ...)
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
		width = format_columns(copy);
		if (column == 0) {
			column = (size_t)fprintf(stream, "%*s", (int)indent, "");
		} else if (column + 1 + width > LINE_WIDTH) {
			fprintf(stream, "\n%*s", (int)indent + 2, "");
			column = indent + 2;
		} else {
			fputc(' ', stream);
			column++;
		}
		column += format_limited(stream, copy, LINE_WIDTH);
		word += size;
		word += strspn(word, " ");
	}
	fputc('\n', stream);
}
