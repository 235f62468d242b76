/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Scalars of YAML: plain, quoted, and blocks. Each remembers where its text comes from.
 */
#include <stdlib.h>
#include <string.h>

#include "counters/yaml_reader.h"

/* ---- the text that is gathered ---- */

static void scalar_clear_text(struct yaml_reader *reader)
{
	reader->length = 0;
	reader->source_positions_count = 0;
}

static void scalar_append_char(struct yaml_reader *reader, char c)
{
	if (reader->length + 1 >= reader->capacity) {
		uint32_t capacity = reader->capacity ? reader->capacity * 2 : 256;
		char *grown = realloc(reader->scalar_text, capacity);

		if (grown == NULL) {
			yaml_fail(reader, "no memory");
			return;
		}
		reader->scalar_text = grown;
		reader->capacity = capacity;
	}
	reader->scalar_text[reader->length++] = c;
}

/* The next character comes from where the reader is. */
static void scalar_record_next_char_position(struct yaml_reader *reader)
{
	if (reader->source_positions_count == reader->source_positions_capacity) {
		uint32_t capacity = reader->source_positions_capacity
					    ? reader->source_positions_capacity * 2
					    : 16;
		struct yaml_source_position *grown = realloc(
			reader->source_positions, capacity * sizeof(struct yaml_source_position));

		if (grown == NULL) {
			yaml_fail(reader, "no memory");
			return;
		}
		reader->source_positions = grown;
		reader->source_positions_capacity = capacity;
	}
	reader->source_positions[reader->source_positions_count++] = (struct yaml_source_position){
		reader->length, reader->line, yaml_reader_get_column(reader)};
}

static struct yaml_node *scalar_copy_to_node(struct yaml_reader *reader, struct yaml_node *node)
{
	if (node == NULL || reader->failed)
		return NULL;
	node->text = memory_pool_copy_text(reader->memory, reader->scalar_text, reader->length);
	node->length = reader->length;
	node->source_positions =
		memory_pool_allocate_array(reader->memory, reader->source_positions_count + 1u,
					   sizeof(struct yaml_source_position));
	if (node->text == NULL || node->source_positions == NULL) {
		yaml_fail(reader, "no memory");
		return NULL;
	}
	if (reader->source_positions_count != 0)
		memcpy(node->source_positions, reader->source_positions,
		       reader->source_positions_count * sizeof(struct yaml_source_position));
	node->source_positions_count = reader->source_positions_count;
	return node;
}

/* At the end of a line within a scalar: to the first character of the next one that has any.
 * breaks: how many line ends were passed. false: the scalar ends here; the reader stays there. */
static bool scalar_skip_breaks_to_next_text(struct yaml_reader *reader, int64_t parent,
					    uint32_t *breaks)
{
	struct yaml_reader before = *reader;

	*breaks = 0;
	while (reader->at < reader->size &&
	       yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0))) {
		yaml_skip_line_break(reader);
		++*breaks;
		if (yaml_is_at_document_marker(reader))
			break;
		while (yaml_peek_char_ahead(reader, 0) == ' ')
			reader->at++;
		if (yaml_peek_char_ahead(reader, 0) == '\t' &&
		    (int64_t)yaml_reader_get_offset_in_line(reader) <= parent)
			break;
		yaml_skip_blanks(reader);
	}
	if (reader->at < reader->size && !yaml_is_at_document_marker(reader) &&
	    (int64_t)yaml_reader_get_offset_in_line(reader) > parent)
		return true;
	reader->at = before.at;
	reader->line = before.line;
	reader->line_start_offset = before.line_start_offset;
	return false;
}

static void scalar_append_folded_breaks(struct yaml_reader *reader, uint32_t breaks)
{
	if (breaks == 1)
		scalar_append_char(reader, ' ');
	for (; breaks > 1; breaks--)
		scalar_append_char(reader, '\n');
	scalar_record_next_char_position(reader);
}

/* ---- plain ---- */

static bool check_plain_scalar_start(struct yaml_reader *reader)
{
	char c = yaml_peek_char_ahead(reader, 0), next = yaml_peek_char_ahead(reader, 1);

	if (c == '&' || c == '*')
		return yaml_fail(
			reader,
			"anchors and aliases ('%c') are not supported: quote it if it is text", c);
	if (c == '!')
		return yaml_fail(reader, "tags ('!') are not supported: quote it if it is text");
	if (c == '%' || c == '@' || c == '`')
		return yaml_fail(reader, "a plain text cannot begin with '%c'", c);
	if ((c == '?' || c == ':' || c == '-') &&
	    (yaml_is_blank(next) || yaml_is_line_end_character(next)))
		return yaml_fail(reader, "'%c' is not allowed here", c);
	if (c == '|' || c == '>')
		return yaml_fail(reader, "a block of text ('%c') is not allowed here", c);
	if (c == '\0')
		return yaml_fail(reader, "expected a value, not the end");
	if (strchr("[]{},", c) != NULL)
		return yaml_fail(reader, "'%c' is not allowed here", c);
	return true;
}

static bool is_at_plain_scalar_end(const struct yaml_reader *reader, bool in_flow)
{
	char c = yaml_peek_char_ahead(reader, 0), next = yaml_peek_char_ahead(reader, 1);

	if (yaml_is_line_end_character(c))
		return true;
	if (c == ':')
		return yaml_is_blank(next) || yaml_is_line_end_character(next) ||
		       (in_flow && strchr(",[]{}", next) != NULL);
	if (yaml_is_blank(c)) {
		uint32_t ahead = 1;

		while (yaml_is_blank(yaml_peek_char_ahead(reader, ahead)))
			ahead++;
		return yaml_peek_char_ahead(reader, ahead) == '#' ||
		       yaml_is_line_end_character(yaml_peek_char_ahead(reader, ahead));
	}
	return in_flow && strchr(",[]{}", c) != NULL;
}

/* Reads what stands on one line. Blanks in front of the colon of a key are not part of it. */
static void read_plain_line(struct yaml_reader *reader, bool in_flow)
{
	while (!reader->failed && !is_at_plain_scalar_end(reader, in_flow))
		scalar_append_char(reader, reader->text[reader->at++]);
	while (reader->length != 0 && yaml_is_blank(reader->scalar_text[reader->length - 1]))
		reader->length--;
}

struct yaml_node *yaml_read_plain_scalar(struct yaml_reader *reader, int64_t parent, bool in_flow,
					 bool one_line)
{
	struct yaml_node *node = yaml_node_create(reader, YAML_SCALAR);
	uint32_t breaks;

	if (node == NULL || !check_plain_scalar_start(reader))
		return NULL;
	node->is_plain = true;
	scalar_clear_text(reader);
	scalar_record_next_char_position(reader);
	read_plain_line(reader, in_flow);
	while (!one_line && !reader->failed) {
		struct yaml_reader before = *reader;

		yaml_skip_blanks(reader);
		if (!yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)) ||
		    !scalar_skip_breaks_to_next_text(reader, parent, &breaks) ||
		    yaml_peek_char_ahead(reader, 0) == '#' ||
		    (in_flow && strchr(",[]{}", yaml_peek_char_ahead(reader, 0)) != NULL)) {
			reader->at = before.at;
			reader->line = before.line;
			reader->line_start_offset = before.line_start_offset;
			break;
		}
		scalar_append_folded_breaks(reader, breaks);
		read_plain_line(reader, in_flow);
		if (!in_flow && yaml_peek_char_ahead(reader, 0) == ':')
			yaml_fail(reader, "a ':' within a text: is the line indented by too much?");
	}
	return scalar_copy_to_node(reader, node);
}

/* ---- quoted ---- */

static void scalar_append_code_point(struct yaml_reader *reader, uint32_t code)
{
	if (code < 0x80) {
		scalar_append_char(reader, (char)code);
	} else if (code < 0x800) {
		scalar_append_char(reader, (char)(0xc0 | code >> 6));
		scalar_append_char(reader, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		scalar_append_char(reader, (char)(0xe0 | code >> 12));
		scalar_append_char(reader, (char)(0x80 | (code >> 6 & 0x3f)));
		scalar_append_char(reader, (char)(0x80 | (code & 0x3f)));
	} else {
		scalar_append_char(reader, (char)(0xf0 | code >> 18));
		scalar_append_char(reader, (char)(0x80 | (code >> 12 & 0x3f)));
		scalar_append_char(reader, (char)(0x80 | (code >> 6 & 0x3f)));
		scalar_append_char(reader, (char)(0x80 | (code & 0x3f)));
	}
}

static uint32_t read_quoted_hex_digits(struct yaml_reader *reader, int digits)
{
	uint32_t code = 0;

	for (int i = 0; i < digits; i++, reader->at++) {
		char c = yaml_peek_char_ahead(reader, 0);
		const char *found = c != '\0' ? strchr("0123456789abcdef", c | 0x20) : NULL;

		if (found == NULL) {
			yaml_fail(reader, "expected %d hexadecimal digits", digits);
			return 0;
		}
		code = code * 16 + (uint32_t)(found - "0123456789abcdef");
	}
	return code;
}

/* Beyond U+FFFF JSON has two halves behind each other, as UTF-16 (RFC 8259, 7). */
static void read_quoted_code_point(struct yaml_reader *reader, int digits)
{
	uint32_t code = read_quoted_hex_digits(reader, digits);

	if (code >= 0xd800 && code < 0xdc00 && yaml_peek_char_ahead(reader, 0) == '\\' &&
	    yaml_peek_char_ahead(reader, 1) == 'u') {
		uint32_t low;

		reader->at += 2;
		low = read_quoted_hex_digits(reader, 4);
		code = low >= 0xdc00 && low < 0xe000
			       ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
			       : 0;
	}
	if (code == 0 || (code >= 0xd800 && code < 0xe000))
		yaml_fail(reader, "not a character that can be in a text");
	else
		scalar_append_code_point(reader, code);
}

/* Behind the backslash. */
static void read_quoted_escape(struct yaml_reader *reader)
{
	static const char from[] = "nt\"\\/ erbf";
	static const char to[] = "\n\t\"\\/ \033\r\b\f";
	char c = yaml_peek_char_ahead(reader, 0);
	const char *found = c != '\0' ? strchr(from, c) : NULL;

	if (found != NULL) {
		reader->at++;
		scalar_append_char(reader, to[found - from]);
	} else if (c == 'x' || c == 'u') {
		reader->at++;
		read_quoted_code_point(reader, c == 'x' ? 2 : 4);
	} else {
		yaml_fail(reader, "an unsupported escape");
	}
	scalar_record_next_char_position(reader);
}

/* Over the end of a line between quotes; a backslash in front of it takes it away. */
static bool read_quoted_line_break(struct yaml_reader *reader, const struct yaml_node *node,
				   int64_t parent, bool is_kept)
{
	uint32_t breaks;

	while (is_kept && reader->length != 0 &&
	       yaml_is_blank(reader->scalar_text[reader->length - 1]))
		reader->length--;
	if (!scalar_skip_breaks_to_next_text(reader, parent, &breaks))
		return yaml_fail_at(reader, node->line, node->column,
				    "the quotes that begin here are not closed");
	if (is_kept)
		scalar_append_folded_breaks(reader, breaks);
	else
		scalar_record_next_char_position(reader);
	return true;
}

struct yaml_node *yaml_read_quoted_scalar(struct yaml_reader *reader, int64_t parent)
{
	struct yaml_node *node = yaml_node_create(reader, YAML_SCALAR);
	char quote = yaml_peek_char_ahead(reader, 0), c;

	if (node == NULL)
		return NULL;
	reader->at++;
	scalar_clear_text(reader);
	scalar_record_next_char_position(reader);
	while (!reader->failed) {
		c = yaml_peek_char_ahead(reader, 0);
		if (yaml_is_line_end_character(c)) {
			read_quoted_line_break(reader, node, parent, true);
		} else if (c == quote && quote == '\'' &&
			   yaml_peek_char_ahead(reader, 1) == quote) {
			scalar_append_char(reader, quote);
			reader->at += 2;
			scalar_record_next_char_position(reader);
		} else if (c == quote) {
			reader->at++;
			break;
		} else if (c == '\\' && quote == '"') {
			reader->at++;
			if (yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)))
				read_quoted_line_break(reader, node, parent, false);
			else
				read_quoted_escape(reader);
		} else {
			scalar_append_char(reader, c);
			reader->at++;
		}
	}
	return scalar_copy_to_node(reader, node);
}

/* ---- blocks of text ---- */

struct yaml_block_header {
	bool is_folded;
	char chomping_indicator; /* '-', '+' or '\0' */
	int64_t content_indent;  /* of its lines; -1: that of the first one */
};

static bool read_block_header(struct yaml_reader *reader, struct yaml_block_header *block,
			      int64_t parent)
{
	block->is_folded = yaml_peek_char_ahead(reader, 0) == '>';
	block->chomping_indicator = '\0';
	block->content_indent = -1;
	for (reader->at++; !yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0));
	     reader->at++) {
		char c = yaml_peek_char_ahead(reader, 0);

		if ((c == '-' || c == '+') && block->chomping_indicator == '\0')
			block->chomping_indicator = c;
		else if (c >= '1' && c <= '9' && block->content_indent < 0)
			block->content_indent = (parent < 0 ? 0 : parent) + (c - '0');
		else
			break;
	}
	if (!yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)) &&
	    !yaml_is_blank(yaml_peek_char_ahead(reader, 0)))
		return yaml_fail(reader, "'%c' cannot stand behind the sign of a block of text",
				 yaml_peek_char_ahead(reader, 0));
	yaml_skip_blanks(reader);
	if (yaml_peek_char_ahead(reader, 0) == '#') {
		while (!yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)))
			reader->at++;
	}
	if (!yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)))
		return yaml_fail(reader, "the text begins on the next line");
	yaml_skip_line_break(reader);
	return true;
}

/* At the beginning of a line: to its first character that counts. false: the block has ended. */
static bool skip_block_line_indent(struct yaml_reader *reader, struct yaml_block_header *block,
				   int64_t parent)
{
	uint32_t start = reader->at;

	if (reader->at >= reader->size || yaml_is_at_document_marker(reader))
		return false;
	while (yaml_peek_char_ahead(reader, 0) == ' ' &&
	       (block->content_indent < 0 ||
		(int64_t)yaml_reader_get_offset_in_line(reader) < block->content_indent))
		reader->at++;
	if (yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)))
		return true;
	if (block->content_indent < 0 && (int64_t)yaml_reader_get_offset_in_line(reader) > parent)
		block->content_indent = (int64_t)yaml_reader_get_offset_in_line(reader);
	if (block->content_indent >= 0 &&
	    (int64_t)yaml_reader_get_offset_in_line(reader) >= block->content_indent)
		return true;
	reader->at = start;
	return false;
}

struct yaml_node *yaml_read_block_scalar(struct yaml_reader *reader, int64_t parent)
{
	struct yaml_node *node = yaml_node_create(reader, YAML_SCALAR);
	bool was_indented = false, is_first = true;
	struct yaml_block_header block;
	uint32_t empty = 0;

	if (node == NULL || !read_block_header(reader, &block, parent))
		return NULL;
	scalar_clear_text(reader);
	while (!reader->failed && skip_block_line_indent(reader, &block, parent)) {
		bool is_indented = yaml_is_blank(yaml_peek_char_ahead(reader, 0));

		if (yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0))) {
			empty++;
			yaml_skip_line_break(reader);
			continue;
		}
		/* Lines that are indented further are not folded. */
		if (!is_first && block.is_folded && !empty && !is_indented && !was_indented)
			scalar_append_char(reader, ' ');
		else if (!is_first && (!block.is_folded || is_indented || was_indented))
			scalar_append_char(reader, '\n');
		for (; empty != 0; empty--)
			scalar_append_char(reader, '\n');
		scalar_record_next_char_position(reader);
		while (!reader->failed &&
		       !yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)))
			scalar_append_char(reader, reader->text[reader->at++]);
		yaml_skip_line_break(reader);
		was_indented = is_indented;
		is_first = false;
	}
	if (block.chomping_indicator != '-' && !is_first)
		scalar_append_char(reader, '\n');
	for (; block.chomping_indicator == '+' && empty != 0; empty--)
		scalar_append_char(reader, '\n');
	return scalar_copy_to_node(reader, node);
}
