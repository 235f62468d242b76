/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the parts of a page share: the stream, the tree of functions, and the table of strings,
 * which is written last. docs/reference/report-page.md describes the data.
 *
 * The data are JSON inside a script element. Only "<" could end that, so text never holds one.
 */
#ifndef KYMO_OUTPUT_WEB_PAGE_H
#define KYMO_OUTPUT_WEB_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "output/output.h"
#include "output/strings.h"
#include "output/web/page_tree.h"

struct page_writer {
	struct session *session;
	const struct output_options *options;
	struct problem *problem;
	FILE *stream;
	struct page_tree tree;
	struct string_table strings;
	int error;
};

/* Writes a page around the tree, and what `write_more` adds, which may be NULL. */
int page_write(struct session *session, const struct output_options *options, FILE *stream,
	       struct problem *problem, int (*write_more)(struct page_writer *page));

/* page_json.c */
void page_put_string(FILE *stream, const char *text);
void page_put_key(FILE *stream, const char *key);
void page_put_text_field(FILE *stream, const char *key, const char *text); /* and a comma */
/* Separates elements: nothing before the first. */
void page_put_comma_unless_first(FILE *stream, size_t index);
/* The text's number in the table of strings; -1 for NULL. */
int64_t page_get_string_number(struct page_writer *page, const char *text);

/* Numbers of seven bits a byte, the lowest first; the top bit says that more follow. In base64. */
struct page_packer {
	FILE *stream;
	uint8_t bytes[3];
	unsigned count;
};
void page_pack_number(struct page_packer *packer, uint64_t number);
/* Small numbers of either sign are short. */
void page_pack_difference(struct page_packer *packer, uint64_t number, uint64_t from);
void page_pack_end(struct page_packer *packer);

/* page_flame.c: functions, nodes and rows. */
void page_write_tree(struct page_writer *page);
/* Where a column stands among those that are written. */
unsigned page_get_column_position(const struct page_writer *page, unsigned column);

#endif
