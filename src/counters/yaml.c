/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The structure of a YAML document; see yaml.h.
 */
#include "counters/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "counters/yaml_reader.h"

#define NESTING_DEPTH_MAX 64u

static struct yaml_node *read_block(struct yaml_reader *reader, int64_t parent);

/* ---- the reader ---- */

uint32_t yaml_reader_get_column(const struct yaml_reader *reader)
{
	uint32_t column = 1;

	for (uint32_t i = reader->line_start_offset; i < reader->at; i++)
		column += ((unsigned char)reader->text[i] & 0xc0) != 0x80;
	return column;
}

static void record_first_problem(struct yaml_reader *reader, uint32_t line, uint32_t column,
				 const char *format, va_list arguments)
{
	if (reader->failed)
		return;
	reader->failed = true;
	reader->problem->line = line;
	reader->problem->column = column;
	vsnprintf(reader->problem->text, sizeof(reader->problem->text), format, arguments);
}

bool yaml_fail(struct yaml_reader *reader, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	record_first_problem(reader, reader->line, yaml_reader_get_column(reader), format,
			     arguments);
	va_end(arguments);
	return false;
}

bool yaml_fail_at(struct yaml_reader *reader, uint32_t line, uint32_t column, const char *format,
		  ...)
{
	va_list arguments;

	va_start(arguments, format);
	record_first_problem(reader, line, column, format, arguments);
	va_end(arguments);
	return false;
}

void yaml_skip_line_break(struct yaml_reader *reader)
{
	if (yaml_peek_char_ahead(reader, 0) == '\r')
		reader->at++;
	if (yaml_peek_char_ahead(reader, 0) == '\n')
		reader->at++;
	reader->line++;
	reader->line_start_offset = reader->at;
}

void yaml_skip_blanks(struct yaml_reader *reader)
{
	while (yaml_is_blank(yaml_peek_char_ahead(reader, 0)))
		reader->at++;
}

bool yaml_is_at_document_marker(const struct yaml_reader *reader)
{
	return reader->at == reader->line_start_offset && reader->size - reader->at >= 3 &&
	       (memcmp(reader->text + reader->at, "---", 3) == 0 ||
		memcmp(reader->text + reader->at, "...", 3) == 0) &&
	       (yaml_is_blank(yaml_peek_char_ahead(reader, 3)) ||
		yaml_is_line_end_character(yaml_peek_char_ahead(reader, 3)));
}

/* A '#' begins a comment where a line begins or a blank stands in front of it. */
static bool is_at_comment(const struct yaml_reader *reader)
{
	return yaml_peek_char_ahead(reader, 0) == '#' &&
	       (reader->at == reader->line_start_offset ||
		yaml_is_blank(reader->text[reader->at - 1]));
}

bool yaml_skip_to_content(struct yaml_reader *reader)
{
	bool indenting = reader->at == reader->line_start_offset, tabs = false;

	while (reader->at < reader->size) {
		char c = yaml_peek_char_ahead(reader, 0);

		if (is_at_comment(reader)) {
			while (!yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)))
				reader->at++;
		} else if (yaml_is_line_end_character(c)) {
			yaml_skip_line_break(reader);
			indenting = true;
			tabs = false;
		} else if (yaml_is_blank(c)) {
			tabs |= indenting && c == '\t';
			reader->at++;
		} else {
			break;
		}
	}
	if (tabs && reader->at < reader->size)
		return yaml_fail(reader, "a tab before it: indent lines by blanks");
	return !reader->failed;
}

struct yaml_node *yaml_node_create(struct yaml_reader *reader, enum yaml_node_kind kind)
{
	struct yaml_node *node =
		reader->failed ? NULL : memory_pool_allocate(reader->memory, sizeof(*node));

	if (node == NULL) {
		yaml_fail(reader, "no memory");
		return NULL;
	}
	node->kind = kind;
	node->line = reader->line;
	node->column = yaml_reader_get_column(reader);
	node->text = "";
	return node;
}

static struct yaml_node *create_empty_scalar(struct yaml_reader *reader)
{
	struct yaml_node *node = yaml_node_create(reader, YAML_SCALAR);

	if (node != NULL)
		node->is_plain = true;
	return node;
}

static bool enter_nested_level(struct yaml_reader *reader)
{
	if (++reader->depth <= NESTING_DEPTH_MAX)
		return true;
	return yaml_fail(reader, "nested more than %u deep", NESTING_DEPTH_MAX);
}

/* Behind a value, nothing more stands on its line. */
static bool expect_line_end(struct yaml_reader *reader)
{
	yaml_skip_blanks(reader);
	if (is_at_comment(reader) || yaml_is_line_end_character(yaml_peek_char_ahead(reader, 0)) ||
	    reader->at == reader->line_start_offset)
		return true;
	if (yaml_peek_char_ahead(reader, 0) == ':')
		return yaml_fail(reader, "a second ':' on one line: quote the text if it is part "
					 "of it");
	return yaml_fail(reader, "'%c' after the end of a value", yaml_peek_char_ahead(reader, 0));
}

/* ---- in braces and brackets ---- */

static struct yaml_node *read_flow_collection(struct yaml_reader *reader);

static struct yaml_node *read_flow_value(struct yaml_reader *reader)
{
	char c = yaml_peek_char_ahead(reader, 0);

	if (c == '[' || c == '{')
		return read_flow_collection(reader);
	if (c == '"' || c == '\'')
		return yaml_read_quoted_scalar(reader, -1);
	return yaml_read_plain_scalar(reader, -1, true, false);
}

static bool check_key_is_new(struct yaml_reader *reader, const struct yaml_node *mapping,
			     const struct yaml_node *key)
{
	const struct yaml_node *value = mapping->first;

	for (; value != NULL; value = value->next) {
		if (value->key->length == key->length &&
		    memcmp(value->key->text, key->text, key->length) == 0)
			return yaml_fail_at(
				reader, key->line, key->column,
				"'%.60s' is here a second time: the first is in line %u", key->text,
				value->key->line);
	}
	return true;
}

/* A value, or a key with its value. */
static struct yaml_node *read_flow_entry(struct yaml_reader *reader, struct yaml_node *within)
{
	struct yaml_node *value = read_flow_value(reader), *key = value;

	if (value == NULL || within->kind == YAML_SEQUENCE)
		return value;
	if (key->kind != YAML_SCALAR) {
		yaml_fail_at(reader, key->line, key->column, "a key is a text");
		return NULL;
	}
	if (!yaml_skip_to_content(reader))
		return NULL;
	if (yaml_peek_char_ahead(reader, 0) != ':') {
		yaml_fail(reader, "expected ':' after '%.60s'", key->text);
		return NULL;
	}
	reader->at++;
	if (!yaml_skip_to_content(reader) || !check_key_is_new(reader, within, key))
		return NULL;
	value = strchr(",}", yaml_peek_char_ahead(reader, 0)) != NULL && reader->at < reader->size
			? create_empty_scalar(reader)
			: read_flow_value(reader);
	if (value != NULL)
		value->key = key;
	return value;
}

static struct yaml_node *read_flow_collection(struct yaml_reader *reader)
{
	char close = yaml_peek_char_ahead(reader, 0) == '[' ? ']' : '}';
	struct yaml_node *node =
		yaml_node_create(reader, close == ']' ? YAML_SEQUENCE : YAML_MAPPING);
	struct yaml_node **end;

	if (node == NULL || !enter_nested_level(reader))
		return NULL;
	end = &node->first;
	reader->at++;
	while (yaml_skip_to_content(reader) && reader->at < reader->size &&
	       yaml_peek_char_ahead(reader, 0) != close) {
		*end = read_flow_entry(reader, node);
		if (*end == NULL || !yaml_skip_to_content(reader))
			return NULL;
		end = &(*end)->next;
		if (yaml_peek_char_ahead(reader, 0) == ',') {
			reader->at++;
		} else if (yaml_peek_char_ahead(reader, 0) != close && reader->at < reader->size) {
			yaml_fail(reader, "expected ',' or '%c'", close);
			return NULL;
		}
	}
	if (reader->at >= reader->size)
		yaml_fail_at(reader, node->line, node->column, "this '%c' is not closed",
			     close == ']' ? '[' : '{');
	if (reader->failed)
		return NULL;
	reader->at++;
	reader->depth--;
	return node;
}

/* ---- as blocks ---- */

static bool is_at_sequence_item(const struct yaml_reader *reader)
{
	return yaml_peek_char_ahead(reader, 0) == '-' &&
	       (yaml_is_blank(yaml_peek_char_ahead(reader, 1)) ||
		yaml_is_line_end_character(yaml_peek_char_ahead(reader, 1)));
}

/* Is this a key: a text that ends on this line, with a colon behind it? */
static bool is_at_mapping_key(const struct yaml_reader *reader)
{
	struct yaml_reader look = *reader;
	char quote = yaml_peek_char_ahead(&look, 0);

	if (quote != '"' && quote != '\'')
		quote = '\0';
	if (quote != '\0') {
		for (look.at++; yaml_peek_char_ahead(&look, 0) != quote; look.at++) {
			if (yaml_is_line_end_character(yaml_peek_char_ahead(&look, 0)))
				return false;
			if (quote == '"' && yaml_peek_char_ahead(&look, 0) == '\\' &&
			    !yaml_is_line_end_character(yaml_peek_char_ahead(&look, 1)))
				look.at++;
		}
		look.at++;
		yaml_skip_blanks(&look);
		return yaml_peek_char_ahead(&look, 0) == ':' &&
		       (yaml_is_blank(yaml_peek_char_ahead(&look, 1)) ||
			yaml_is_line_end_character(yaml_peek_char_ahead(&look, 1)));
	}
	for (; !yaml_is_line_end_character(yaml_peek_char_ahead(&look, 0)) && !is_at_comment(&look);
	     look.at++) {
		if (yaml_peek_char_ahead(&look, 0) == ':' &&
		    (yaml_is_blank(yaml_peek_char_ahead(&look, 1)) ||
		     yaml_is_line_end_character(yaml_peek_char_ahead(&look, 1))))
			return true;
	}
	return false;
}

/* What begins on this line behind a key or a dash, or on a following one. parent: its lines are
 * indented by more. same: a list may be indented as its key is. */
static struct yaml_node *read_block_value(struct yaml_reader *reader, int64_t parent, bool same)
{
	struct yaml_node *node;
	uint32_t line = reader->line;
	char c;

	yaml_skip_blanks(reader);
	c = yaml_peek_char_ahead(reader, 0);
	if (!yaml_is_line_end_character(c) && !is_at_comment(reader)) {
		if (c == '|' || c == '>')
			return yaml_read_block_scalar(reader, parent);
		if (c == '[' || c == '{')
			node = read_flow_collection(reader);
		else if (c == '"' || c == '\'')
			node = yaml_read_quoted_scalar(reader, parent);
		else
			node = yaml_read_plain_scalar(reader, parent, false, false);
		return node != NULL && expect_line_end(reader) ? node : NULL;
	}
	node = create_empty_scalar(reader);
	if (node == NULL || !yaml_skip_to_content(reader))
		return NULL;
	if (reader->line == line || reader->at >= reader->size ||
	    yaml_is_at_document_marker(reader))
		return node;
	if ((int64_t)yaml_reader_get_offset_in_line(reader) > parent)
		return read_block(reader, parent);
	if (same && (int64_t)yaml_reader_get_offset_in_line(reader) == parent &&
	    is_at_sequence_item(reader))
		return read_block(reader, parent - 1);
	return node;
}

/* To the next entry of a block that is indented so. false: the block has ended, or failed. */
static bool advance_to_next_block_entry(struct yaml_reader *reader, uint32_t indent)
{
	if (!yaml_skip_to_content(reader) || reader->at >= reader->size ||
	    yaml_is_at_document_marker(reader) || yaml_reader_get_offset_in_line(reader) < indent)
		return false;
	if (yaml_reader_get_offset_in_line(reader) == indent)
		return true;
	return yaml_fail(reader, "the line is indented by %u, those it belongs to by %u",
			 yaml_reader_get_offset_in_line(reader), indent);
}

static struct yaml_node *read_sequence(struct yaml_reader *reader)
{
	struct yaml_node *node = yaml_node_create(reader, YAML_SEQUENCE);
	uint32_t indent = yaml_reader_get_offset_in_line(reader);
	struct yaml_node **end;

	if (node == NULL)
		return NULL;
	end = &node->first;
	while (advance_to_next_block_entry(reader, indent) && is_at_sequence_item(reader)) {
		reader->at++;
		yaml_skip_blanks(reader);
		/* A block may begin on the line of the dash. */
		*end = is_at_sequence_item(reader) ||
				       (!yaml_is_line_end_character(
						yaml_peek_char_ahead(reader, 0)) &&
					strchr("[{|>", yaml_peek_char_ahead(reader, 0)) == NULL &&
					is_at_mapping_key(reader))
			       ? read_block(reader, indent)
			       : read_block_value(reader, indent, false);
		if (*end == NULL)
			return NULL;
		end = &(*end)->next;
	}
	return reader->failed ? NULL : node;
}

static struct yaml_node *read_mapping_key(struct yaml_reader *reader)
{
	struct yaml_node *key;
	char c = yaml_peek_char_ahead(reader, 0);

	key = c == '"' || c == '\'' ? yaml_read_quoted_scalar(reader, -1)
				    : yaml_read_plain_scalar(reader, -1, false, true);
	if (key == NULL)
		return NULL;
	yaml_skip_blanks(reader);
	if (yaml_peek_char_ahead(reader, 0) != ':') {
		yaml_fail(reader, "expected ':' after '%.60s'", key->text);
		return NULL;
	}
	reader->at++;
	return key;
}

static struct yaml_node *read_mapping(struct yaml_reader *reader)
{
	struct yaml_node *node = yaml_node_create(reader, YAML_MAPPING), *key;
	uint32_t indent = yaml_reader_get_offset_in_line(reader);
	struct yaml_node **end;

	if (node == NULL)
		return NULL;
	end = &node->first;
	while (advance_to_next_block_entry(reader, indent)) {
		if (!is_at_mapping_key(reader)) {
			yaml_fail(reader, "expected a key and ':'");
			return NULL;
		}
		key = read_mapping_key(reader);
		if (key == NULL || !check_key_is_new(reader, node, key))
			return NULL;
		*end = read_block_value(reader, indent, true);
		if (*end == NULL)
			return NULL;
		(*end)->key = key;
		end = &(*end)->next;
	}
	return reader->failed ? NULL : node;
}

/* A block, with the reader at its first character. */
static struct yaml_node *read_block(struct yaml_reader *reader, int64_t parent)
{
	struct yaml_node *node;

	if (!enter_nested_level(reader))
		return NULL;
	if (is_at_sequence_item(reader))
		node = read_sequence(reader);
	else if (strchr("[{|>", yaml_peek_char_ahead(reader, 0)) == NULL &&
		 is_at_mapping_key(reader))
		node = read_mapping(reader);
	else
		node = read_block_value(reader, parent, false);
	reader->depth--;
	return node;
}

/* ---- the document ---- */

static bool check_document_characters(struct yaml_reader *reader)
{
	size_t length;

	for (; reader->at < reader->size; reader->at += (uint32_t)length) {
		unsigned char c = (unsigned char)reader->text[reader->at];

		length = utf8_character_size(reader->text + reader->at, reader->size - reader->at);
		if (length == 0)
			return yaml_fail(reader, "a byte that is not UTF-8 (0x%02x)", c);
		if ((c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
			return yaml_fail(reader, "a control character (0x%02x)", c);
		if (c == '\n') {
			reader->line++;
			reader->line_start_offset = reader->at + 1;
		}
	}
	reader->at = reader->line_start_offset = 0;
	reader->line = 1;
	return true;
}

static struct yaml_node *read_document(struct yaml_reader *reader)
{
	struct yaml_node *node;

	if (reader->size >= 3 && memcmp(reader->text, "\xef\xbb\xbf", 3) == 0)
		reader->at = reader->line_start_offset = 3;
	if (!yaml_skip_to_content(reader))
		return NULL;
	if (yaml_is_at_document_marker(reader) && yaml_peek_char_ahead(reader, 0) == '-') {
		reader->at += 3;
		if (!yaml_skip_to_content(reader))
			return NULL;
	}
	if (reader->at >= reader->size || yaml_is_at_document_marker(reader))
		node = create_empty_scalar(reader);
	else
		node = read_block(reader, -1);
	if (node == NULL || !yaml_skip_to_content(reader))
		return NULL;
	if (yaml_is_at_document_marker(reader) && yaml_peek_char_ahead(reader, 0) == '.') {
		reader->at += 3;
		if (!yaml_skip_to_content(reader))
			return NULL;
	}
	if (reader->at < reader->size) {
		yaml_fail(reader, yaml_is_at_document_marker(reader)
					  ? "a second document: a file has only one"
					  : "this belongs to nothing above it");
		return NULL;
	}
	return node;
}

struct yaml_node *yaml_parse(struct memory_pool *memory, const char *text, size_t size,
			     struct yaml_problem *problem)
{
	struct yaml_reader reader = {.memory = memory, .problem = problem, .text = text, .line = 1};
	struct yaml_node *node = NULL;

	*problem = (struct yaml_problem){.line = 1, .column = 1};
	if (size > UINT32_MAX / 4) {
		yaml_fail(&reader, "the file is too large");
		return NULL;
	}
	reader.size = (uint32_t)size;
	if (check_document_characters(&reader))
		node = read_document(&reader);
	free(reader.scalar_text);
	free(reader.source_positions);
	return reader.failed ? NULL : node;
}

const struct yaml_node *yaml_find_value(const struct yaml_node *mapping, const char *key)
{
	const struct yaml_node *value = mapping->kind == YAML_MAPPING ? mapping->first : NULL;

	while (value != NULL && strcmp(value->key->text, key) != 0)
		value = value->next;
	return value;
}

void yaml_offset_to_line_column(const struct yaml_node *scalar, size_t offset, uint32_t *line,
				uint32_t *column)
{
	const struct yaml_source_position *place = NULL;

	*line = scalar->line;
	*column = scalar->column;
	for (uint32_t i = 0;
	     i < scalar->source_positions_count && scalar->source_positions[i].offset <= offset;
	     i++)
		place = &scalar->source_positions[i];
	if (place == NULL)
		return;
	*line = place->line;
	*column = place->column;
	for (size_t i = place->offset; i < offset && i < scalar->length; i++)
		*column += ((unsigned char)scalar->text[i] & 0xc0) != 0x80;
}
