/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Scalars of YAML: plain, quoted, and blocks. Each remembers where its text comes from.
 */
#include <stdlib.h>
#include <string.h>

#include "counters/yaml_reader.h"

/* ---- the text that is gathered ---- */

static void scalar_begin(struct yaml_reader *reader)
{
	reader->length = 0;
	reader->places_count = 0;
}

static void scalar_add(struct yaml_reader *reader, char c)
{
	if (reader->length + 1 >= reader->capacity) {
		uint32_t capacity = reader->capacity ? reader->capacity * 2 : 256;
		char *grown = realloc(reader->scalar, capacity);

		if (grown == NULL) {
			yaml_fail(reader, "no memory");
			return;
		}
		reader->scalar = grown;
		reader->capacity = capacity;
	}
	reader->scalar[reader->length++] = c;
}

/* The next character comes from where the reader is. */
static void scalar_place(struct yaml_reader *reader)
{
	if (reader->places_count == reader->places_capacity) {
		uint32_t capacity = reader->places_capacity ? reader->places_capacity * 2 : 16;
		struct yaml_place *grown =
			realloc(reader->places, capacity * sizeof(struct yaml_place));

		if (grown == NULL) {
			yaml_fail(reader, "no memory");
			return;
		}
		reader->places = grown;
		reader->places_capacity = capacity;
	}
	reader->places[reader->places_count++] =
		(struct yaml_place){reader->length, reader->line, yaml_column(reader)};
}

static struct yaml_node *scalar_end(struct yaml_reader *reader, struct yaml_node *node)
{
	if (node == NULL || reader->failed)
		return NULL;
	node->text = memory_text(reader->memory, reader->scalar, reader->length);
	node->length = reader->length;
	node->places =
		memory_array(reader->memory, reader->places_count + 1u, sizeof(struct yaml_place));
	if (node->text == NULL || node->places == NULL) {
		yaml_fail(reader, "no memory");
		return NULL;
	}
	if (reader->places_count != 0)
		memcpy(node->places, reader->places,
		       reader->places_count * sizeof(struct yaml_place));
	node->places_count = reader->places_count;
	return node;
}

/* At the end of a line within a scalar: to the first character of the next one that has any.
 * breaks: how many line ends were passed. false: the scalar ends here; the reader stays there. */
static bool scalar_next_line(struct yaml_reader *reader, int64_t parent, uint32_t *breaks)
{
	struct yaml_reader before = *reader;

	*breaks = 0;
	while (reader->at < reader->size && yaml_is_break(yaml_char(reader, 0))) {
		yaml_break(reader);
		++*breaks;
		if (yaml_at_marker(reader))
			break;
		while (yaml_char(reader, 0) == ' ')
			reader->at++;
		if (yaml_char(reader, 0) == '\t' && (int64_t)yaml_indent(reader) <= parent)
			break;
		yaml_blanks(reader);
	}
	if (reader->at < reader->size && !yaml_at_marker(reader) &&
	    (int64_t)yaml_indent(reader) > parent)
		return true;
	reader->at = before.at;
	reader->line = before.line;
	reader->line_start = before.line_start;
	return false;
}

static void scalar_fold(struct yaml_reader *reader, uint32_t breaks)
{
	if (breaks == 1)
		scalar_add(reader, ' ');
	for (; breaks > 1; breaks--)
		scalar_add(reader, '\n');
	scalar_place(reader);
}

/* ---- plain ---- */

static bool plain_may_begin(struct yaml_reader *reader)
{
	char c = yaml_char(reader, 0), next = yaml_char(reader, 1);

	if (c == '&' || c == '*')
		return yaml_fail(reader,
				 "anchors and aliases ('%c') are not read here: quote it if "
				 "it is text",
				 c);
	if (c == '!')
		return yaml_fail(reader, "tags ('!') are not read here: quote it if it is text");
	if (c == '%' || c == '@' || c == '`')
		return yaml_fail(reader, "a plain text cannot begin with '%c'", c);
	if ((c == '?' || c == ':' || c == '-') && (yaml_is_blank(next) || yaml_is_break(next)))
		return yaml_fail(reader, "'%c' cannot stand here", c);
	if (c == '|' || c == '>')
		return yaml_fail(reader, "a block of text ('%c') cannot stand here", c);
	if (c == '\0')
		return yaml_fail(reader, "a value expected, not the end");
	if (strchr("[]{},", c) != NULL)
		return yaml_fail(reader, "'%c' cannot stand here", c);
	return true;
}

static bool plain_ends(const struct yaml_reader *reader, bool in_flow)
{
	char c = yaml_char(reader, 0), next = yaml_char(reader, 1);

	if (yaml_is_break(c))
		return true;
	if (c == ':')
		return yaml_is_blank(next) || yaml_is_break(next) ||
		       (in_flow && strchr(",[]{}", next) != NULL);
	if (yaml_is_blank(c)) {
		uint32_t ahead = 1;

		while (yaml_is_blank(yaml_char(reader, ahead)))
			ahead++;
		return yaml_char(reader, ahead) == '#' || yaml_is_break(yaml_char(reader, ahead));
	}
	return in_flow && strchr(",[]{}", c) != NULL;
}

/* Of one line. Blanks in front of the colon of a key are not part of it. */
static void plain_line(struct yaml_reader *reader, bool in_flow)
{
	while (!reader->failed && !plain_ends(reader, in_flow))
		scalar_add(reader, reader->text[reader->at++]);
	while (reader->length != 0 && yaml_is_blank(reader->scalar[reader->length - 1]))
		reader->length--;
}

struct yaml_node *yaml_plain(struct yaml_reader *reader, int64_t parent, bool in_flow,
			     bool one_line)
{
	struct yaml_node *node = yaml_node_make(reader, YAML_SCALAR);
	uint32_t breaks;

	if (node == NULL || !plain_may_begin(reader))
		return NULL;
	node->is_plain = true;
	scalar_begin(reader);
	scalar_place(reader);
	plain_line(reader, in_flow);
	while (!one_line && !reader->failed) {
		struct yaml_reader before = *reader;

		yaml_blanks(reader);
		if (!yaml_is_break(yaml_char(reader, 0)) ||
		    !scalar_next_line(reader, parent, &breaks) || yaml_char(reader, 0) == '#' ||
		    (in_flow && strchr(",[]{}", yaml_char(reader, 0)) != NULL)) {
			reader->at = before.at;
			reader->line = before.line;
			reader->line_start = before.line_start;
			break;
		}
		scalar_fold(reader, breaks);
		plain_line(reader, in_flow);
		if (!in_flow && yaml_char(reader, 0) == ':')
			yaml_fail(reader, "a ':' within a text: is the line indented by too much?");
	}
	return scalar_end(reader, node);
}

/* ---- quoted ---- */

static void add_utf8(struct yaml_reader *reader, uint32_t code)
{
	if (code < 0x80) {
		scalar_add(reader, (char)code);
	} else if (code < 0x800) {
		scalar_add(reader, (char)(0xc0 | code >> 6));
		scalar_add(reader, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		scalar_add(reader, (char)(0xe0 | code >> 12));
		scalar_add(reader, (char)(0x80 | (code >> 6 & 0x3f)));
		scalar_add(reader, (char)(0x80 | (code & 0x3f)));
	} else {
		scalar_add(reader, (char)(0xf0 | code >> 18));
		scalar_add(reader, (char)(0x80 | (code >> 12 & 0x3f)));
		scalar_add(reader, (char)(0x80 | (code >> 6 & 0x3f)));
		scalar_add(reader, (char)(0x80 | (code & 0x3f)));
	}
}

static uint32_t quoted_digits(struct yaml_reader *reader, int digits)
{
	uint32_t code = 0;

	for (int i = 0; i < digits; i++, reader->at++) {
		char c = yaml_char(reader, 0);
		const char *found = c != '\0' ? strchr("0123456789abcdef", c | 0x20) : NULL;

		if (found == NULL) {
			yaml_fail(reader, "%d hexadecimal digits expected", digits);
			return 0;
		}
		code = code * 16 + (uint32_t)(found - "0123456789abcdef");
	}
	return code;
}

/* Beyond U+FFFF JSON has two halves behind each other, as UTF-16 (RFC 8259, 7). */
static void quoted_code(struct yaml_reader *reader, int digits)
{
	uint32_t code = quoted_digits(reader, digits);

	if (code >= 0xd800 && code < 0xdc00 && yaml_char(reader, 0) == '\\' &&
	    yaml_char(reader, 1) == 'u') {
		uint32_t low;

		reader->at += 2;
		low = quoted_digits(reader, 4);
		code = low >= 0xdc00 && low < 0xe000
			       ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
			       : 0;
	}
	if (code == 0 || (code >= 0xd800 && code < 0xe000))
		yaml_fail(reader, "not a character that can be in a text");
	else
		add_utf8(reader, code);
}

/* Behind the backslash. */
static void quoted_escape(struct yaml_reader *reader)
{
	static const char from[] = "nt\"\\/ erbf";
	static const char to[] = "\n\t\"\\/ \033\r\b\f";
	char c = yaml_char(reader, 0);
	const char *found = c != '\0' ? strchr(from, c) : NULL;

	if (found != NULL) {
		reader->at++;
		scalar_add(reader, to[found - from]);
	} else if (c == 'x' || c == 'u') {
		reader->at++;
		quoted_code(reader, c == 'x' ? 2 : 4);
	} else {
		yaml_fail(reader, "an escape that is not read here");
	}
	scalar_place(reader);
}

/* Over the end of a line between quotes; a backslash in front of it takes it away. */
static bool quoted_break(struct yaml_reader *reader, const struct yaml_node *node, int64_t parent,
			 bool is_kept)
{
	uint32_t breaks;

	while (is_kept && reader->length != 0 && yaml_is_blank(reader->scalar[reader->length - 1]))
		reader->length--;
	if (!scalar_next_line(reader, parent, &breaks))
		return yaml_fail_at(reader, node->line, node->column,
				    "the quotes that begin here are not closed");
	if (is_kept)
		scalar_fold(reader, breaks);
	else
		scalar_place(reader);
	return true;
}

struct yaml_node *yaml_quoted(struct yaml_reader *reader, int64_t parent)
{
	struct yaml_node *node = yaml_node_make(reader, YAML_SCALAR);
	char quote = yaml_char(reader, 0), c;

	if (node == NULL)
		return NULL;
	reader->at++;
	scalar_begin(reader);
	scalar_place(reader);
	while (!reader->failed) {
		c = yaml_char(reader, 0);
		if (yaml_is_break(c)) {
			quoted_break(reader, node, parent, true);
		} else if (c == quote && quote == '\'' && yaml_char(reader, 1) == quote) {
			scalar_add(reader, quote);
			reader->at += 2;
			scalar_place(reader);
		} else if (c == quote) {
			reader->at++;
			break;
		} else if (c == '\\' && quote == '"') {
			reader->at++;
			if (yaml_is_break(yaml_char(reader, 0)))
				quoted_break(reader, node, parent, false);
			else
				quoted_escape(reader);
		} else {
			scalar_add(reader, c);
			reader->at++;
		}
	}
	return scalar_end(reader, node);
}

/* ---- blocks of text ---- */

struct block {
	bool is_folded;
	char chomp;     /* '-', '+' or '\0' */
	int64_t indent; /* of its lines; -1: that of the first one */
};

static bool block_header(struct yaml_reader *reader, struct block *block, int64_t parent)
{
	block->is_folded = yaml_char(reader, 0) == '>';
	block->chomp = '\0';
	block->indent = -1;
	for (reader->at++; !yaml_is_break(yaml_char(reader, 0)); reader->at++) {
		char c = yaml_char(reader, 0);

		if ((c == '-' || c == '+') && block->chomp == '\0')
			block->chomp = c;
		else if (c >= '1' && c <= '9' && block->indent < 0)
			block->indent = (parent < 0 ? 0 : parent) + (c - '0');
		else
			break;
	}
	if (!yaml_is_break(yaml_char(reader, 0)) && !yaml_is_blank(yaml_char(reader, 0)))
		return yaml_fail(reader, "'%c' cannot stand behind the sign of a block of text",
				 yaml_char(reader, 0));
	yaml_blanks(reader);
	if (yaml_char(reader, 0) == '#') {
		while (!yaml_is_break(yaml_char(reader, 0)))
			reader->at++;
	}
	if (!yaml_is_break(yaml_char(reader, 0)))
		return yaml_fail(reader, "the text begins on the next line");
	yaml_break(reader);
	return true;
}

/* At the beginning of a line: to its first character that counts. false: the block has ended. */
static bool block_line(struct yaml_reader *reader, struct block *block, int64_t parent)
{
	uint32_t start = reader->at;

	if (reader->at >= reader->size || yaml_at_marker(reader))
		return false;
	while (yaml_char(reader, 0) == ' ' &&
	       (block->indent < 0 || (int64_t)yaml_indent(reader) < block->indent))
		reader->at++;
	if (yaml_is_break(yaml_char(reader, 0)))
		return true;
	if (block->indent < 0 && (int64_t)yaml_indent(reader) > parent)
		block->indent = (int64_t)yaml_indent(reader);
	if (block->indent >= 0 && (int64_t)yaml_indent(reader) >= block->indent)
		return true;
	reader->at = start;
	return false;
}

struct yaml_node *yaml_block_scalar(struct yaml_reader *reader, int64_t parent)
{
	struct yaml_node *node = yaml_node_make(reader, YAML_SCALAR);
	bool was_indented = false, is_first = true;
	struct block block;
	uint32_t empty = 0;

	if (node == NULL || !block_header(reader, &block, parent))
		return NULL;
	scalar_begin(reader);
	while (!reader->failed && block_line(reader, &block, parent)) {
		bool is_indented = yaml_is_blank(yaml_char(reader, 0));

		if (yaml_is_break(yaml_char(reader, 0))) {
			empty++;
			yaml_break(reader);
			continue;
		}
		/* Lines that are indented further are not folded. */
		if (!is_first && block.is_folded && !empty && !is_indented && !was_indented)
			scalar_add(reader, ' ');
		else if (!is_first && (!block.is_folded || is_indented || was_indented))
			scalar_add(reader, '\n');
		for (; empty != 0; empty--)
			scalar_add(reader, '\n');
		scalar_place(reader);
		while (!reader->failed && !yaml_is_break(yaml_char(reader, 0)))
			scalar_add(reader, reader->text[reader->at++]);
		yaml_break(reader);
		was_indented = is_indented;
		is_first = false;
	}
	if (block.chomp != '-' && !is_first)
		scalar_add(reader, '\n');
	for (; block.chomp == '+' && empty != 0; empty--)
		scalar_add(reader, '\n');
	return scalar_end(reader, node);
}
