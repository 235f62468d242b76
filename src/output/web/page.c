/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A page is one file that needs nothing else: what web/embed.py made of web/report.html, with the
 * data of a result in the middle. flamegraph.html is the page with the call tree alone.
 */
#include "output/web/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/embedded_page.h"

/* A page of this many nodes still loads and zooms at once; it is some 3 MB. */
#define PAGE_NODES_MAX 80000u

static void write_description(struct page_writer *page)
{
	const struct session *session = page->session;
	FILE *stream = page->stream;
	int64_t realtime_ns = (int64_t)session->start_ns + session->realtime_minus_boottime_ns;

	page_put_text_field(stream, "title", session->command_line);
	page_put_text_field(stream, "host",
			    session->process_count != 0 ? session->processes[0].host : "");
	fprintf(stream,
		"\"start_ms\":%" PRId64 ",\"duration_ns\":%" PRIu64 ",\"thread_count\":%" PRIu32
		",",
		session->realtime_minus_boottime_ns != 0 ? realtime_ns / 1000000 : 0,
		session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0,
		view_count_program_threads(session));
}

static void write_strings(struct page_writer *page)
{
	page_put_key(page->stream, "strings");
	putc('[', page->stream);
	for (uint32_t i = 0; i < page->strings.count; i++) {
		page_put_comma_unless_first(page->stream, i);
		page_put_string(page->stream, page->strings.text[i]);
	}
	putc(']', page->stream);
}

/* The reason of a write that failed, before something else changes it. */
static void keep_reason(struct page_writer *page)
{
	if (page->error == 0 && ferror(page->stream))
		page->error = errno != 0 ? -errno : -EIO;
}

static int write_data(struct page_writer *page, int (*write_more)(struct page_writer *page))
{
	int error = 0;

	putc('{', page->stream);
	write_description(page);
	page_write_tree(page);
	keep_reason(page);
	if (write_more != NULL)
		error = write_more(page);
	write_strings(page);
	putc('}', page->stream);
	keep_reason(page);
	return error != 0 ? error : page->error;
}

int page_write(struct session *session, const struct output_options *options, FILE *stream,
	       struct problem *problem, int (*write_more)(struct page_writer *page))
{
	struct problem reason = {""}; /* of what knows more than a number */
	struct page_writer page = {
		.session = session, .options = options, .stream = stream, .problem = &reason};
	char *text = NULL;
	int error = page_tree_init(&page.tree, session, PAGE_NODES_MAX);

	strings_init_with_copies(&page.strings);
	errno = 0; /* a write that fails half-way leaves its reason here */
	if (error == 0)
		error = page_tree_add_allocations(&page.tree, session);
	if (error == 0)
		error = embedded_page_inflate(&report_page, &text);
	if (error == 0) {
		fwrite(text, 1, report_page.head_size, stream);
		error = write_data(&page, write_more);
		fwrite(text + report_page.head_size, 1, report_page.tail_size, stream);
	}
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	strings_deinit(&page.strings);
	page_tree_deinit(&page.tree);
	free(text);
	if (error != 0)
		problem_set(problem, error, "cannot write the page: %s",
			    reason.text[0] ? reason.text : strerror(-error));
	return error;
}

static int write_flame_graph(struct session *session, const struct output_options *options,
			     FILE *stream, struct problem *problem)
{
	return page_write(session, options, stream, problem, NULL);
}

const struct output_format output_format_html = {
	.name = "html",
	.file_name = "flamegraph.html",
	.description = "flame graph for any browser, in one file",
	.write = write_flame_graph,
};
