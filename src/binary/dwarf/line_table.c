/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The head of a line table: parameters, directories and files. DWARF 5, section 6.2.4; versions 2
 * to 4 have fixed layouts instead of entry formats.
 */
#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "binary/dwarf/lines.h"

#define ENTRY_FORMATS_MAX 32u

struct line_entry_format {
	uint64_t content_type, form;
};

static int read_section_if_present(const struct elf_file *file, const char *name,
				   const char *compressed, struct elf_section_data *ret)
{
	const struct elf_section *section = elf_section_find(file, name);
	if (!section && compressed)
		section = elf_section_find(file, compressed);
	*ret = (struct elf_section_data){0};
	int error = section ? elf_section_read(file, section, ret) : 0;
	return error == -ENOMEM ? error : 0;
}

int dwarf_line_sections_read(const struct elf_file *file, struct dwarf_line_sections *ret)
{
	struct dwarf_line_sections sections = {0};
	int error = read_section_if_present(file, ".debug_line", ".zdebug_line", &sections.line);
	if (!error)
		error = read_section_if_present(file, ".debug_line_str", NULL,
						&sections.line_strings);
	if (!error)
		error = read_section_if_present(file, ".debug_str", ".zdebug_str",
						&sections.strings);
	if (error) {
		dwarf_line_sections_deinit(&sections);
		return error;
	}
	*ret = sections;
	return 0;
}

void dwarf_line_sections_deinit(struct dwarf_line_sections *sections)
{
	elf_section_data_deinit(&sections->line);
	elf_section_data_deinit(&sections->line_strings);
	elf_section_data_deinit(&sections->strings);
}

void dwarf_line_table_deinit(struct dwarf_line_table_header *table)
{
	free(table->directories);
	free(table->files);
	*table = (struct dwarf_line_table_header){0};
}

static int append_line_table_directory(struct dwarf_line_table_header *table, const char *name)
{
	if (table->directory_count == table->directory_capacity) {
		size_t capacity = table->directory_capacity ? table->directory_capacity * 2 : 32;
		const char **directories =
			realloc(table->directories, capacity * sizeof(*directories));
		if (!directories)
			return -ENOMEM;
		table->directories = directories;
		table->directory_capacity = capacity;
	}
	table->directories[table->directory_count++] = name;
	return 0;
}

static int append_line_table_file(struct dwarf_line_table_header *table, const char *name,
				  uint64_t directory)
{
	if (table->file_count == table->file_capacity) {
		size_t capacity = table->file_capacity ? table->file_capacity * 2 : 64;
		struct dwarf_line_table_file *files =
			realloc(table->files, capacity * sizeof(*files));
		if (!files)
			return -ENOMEM;
		table->files = files;
		table->file_capacity = capacity;
	}
	table->files[table->file_count++] =
		(struct dwarf_line_table_file){.name = name, .directory = directory};
	return 0;
}

/* Versions 2 to 4: directory 0 is the compilation directory and file 0 nothing. */
static int read_v4_directories_and_files(struct dwarf_line_table_header *table,
					 struct byte_cursor *cursor)
{
	int error = append_line_table_directory(table, table->compilation_directory);
	while (!error && cursor_remaining_bytes(cursor) > 0 && *cursor->at != 0)
		error = append_line_table_directory(table, cursor_read_string(cursor));
	cursor_read_byte(cursor);
	if (!error)
		error = append_line_table_file(table, NULL, 0);
	while (!error && cursor_remaining_bytes(cursor) > 0 && *cursor->at != 0) {
		const char *name = cursor_read_string(cursor);
		uint64_t directory = cursor_read_uleb128(cursor);
		cursor_read_uleb128(cursor); /* time */
		cursor_read_uleb128(cursor); /* size */
		error = append_line_table_file(table, name, directory);
	}
	if (error)
		return error;
	return cursor->failed ? -EBADMSG : 0;
}

static const char *get_section_string_at(const struct elf_section_data *strings, uint64_t offset)
{
	return offset < strings->size ? (const char *)strings->bytes + offset : NULL;
}

/* One value of an entry, as a string or a number, whatever it is. */
static int read_entry_value(struct byte_cursor *cursor, const struct dwarf_line_sections *sections,
			    uint64_t form, size_t offset_size, const char **ret_text,
			    uint64_t *ret_number)
{
	switch (form) {
	case DW_FORM_string:
		*ret_text = cursor_read_string(cursor);
		return 0;
	case DW_FORM_line_strp:
		*ret_text = get_section_string_at(&sections->line_strings,
						  cursor_read_fixed_uint(cursor, offset_size));
		return 0;
	case DW_FORM_strp:
		*ret_text = get_section_string_at(&sections->strings,
						  cursor_read_fixed_uint(cursor, offset_size));
		return 0;
	case DW_FORM_udata:
		*ret_number = cursor_read_uleb128(cursor);
		return 0;
	case DW_FORM_data1:
		*ret_number = cursor_read_fixed_uint(cursor, 1);
		return 0;
	case DW_FORM_data2:
		*ret_number = cursor_read_fixed_uint(cursor, 2);
		return 0;
	case DW_FORM_data4:
		*ret_number = cursor_read_fixed_uint(cursor, 4);
		return 0;
	case DW_FORM_data8:
		*ret_number = cursor_read_fixed_uint(cursor, 8);
		return 0;
	case DW_FORM_data16: /* MD5 of the file */
		cursor_skip_bytes(cursor, 16);
		return 0;
	case DW_FORM_block:
		cursor_skip_bytes(cursor, cursor_read_uleb128(cursor));
		return 0;
	default:
		return -EBADMSG;
	}
}

/* A directory or file list of version 5: formats, count, entries. */
static int read_v5_directories_or_files(struct dwarf_line_table_header *table,
					const struct dwarf_line_sections *sections,
					struct byte_cursor *cursor, size_t offset_size, bool files)
{
	struct line_entry_format formats[ENTRY_FORMATS_MAX];
	size_t format_count = cursor_read_byte(cursor);
	if (format_count > ENTRY_FORMATS_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < format_count; i++) {
		formats[i].content_type = cursor_read_uleb128(cursor);
		formats[i].form = cursor_read_uleb128(cursor);
	}
	uint64_t count = cursor_read_uleb128(cursor);
	/* An entry has at least a byte. */
	if (count > cursor_remaining_bytes(cursor) || (format_count == 0 && count > 0))
		return -EBADMSG;
	int error = 0;
	for (uint64_t i = 0; !error && !cursor->failed && i < count; i++) {
		const char *name = NULL;
		uint64_t directory = 0;
		for (size_t j = 0; !error && j < format_count; j++) {
			const char *text = NULL;
			uint64_t number = 0;
			error = read_entry_value(cursor, sections, formats[j].form, offset_size,
						 &text, &number);
			if (formats[j].content_type == DW_LNCT_path)
				name = text;
			else if (formats[j].content_type == DW_LNCT_directory_index)
				directory = number;
		}
		if (!error)
			error = files ? append_line_table_file(table, name, directory)
				      : append_line_table_directory(table, name);
	}
	if (error)
		return error;
	return cursor->failed ? -EBADMSG : 0;
}

/* The fixed part up to the directories. */
static int read_fixed_header_fields(struct dwarf_line_table_header *table,
				    struct byte_cursor *cursor)
{
	table->minimum_instruction_size = cursor_read_byte(cursor);
	if (table->version >= 4)
		cursor_read_byte(cursor); /* operations per instruction: 1 but on VLIW machines */
	cursor_read_byte(cursor);         /* default of is_stmt: every row counts here */
	table->line_base = (int8_t)cursor_read_byte(cursor);
	table->line_range = cursor_read_byte(cursor);
	table->opcode_base = cursor_read_byte(cursor);
	if (cursor->failed || table->line_range == 0 || table->opcode_base == 0)
		return -EBADMSG;
	for (unsigned i = 1; i < table->opcode_base; i++)
		table->operand_counts[i] = cursor_read_byte(cursor);
	return 0;
}

/* The unit's length, after which the cursor ends with the unit; 4 or 8: size of offsets, 0: bad. */
static size_t read_unit_length_and_offset_size(struct byte_cursor *cursor)
{
	uint64_t length = cursor_read_fixed_uint(cursor, 4);
	size_t offset_size = 4;
	if (length == UINT32_MAX) {
		length = cursor_read_fixed_uint(cursor, 8);
		offset_size = 8;
	}
	if (cursor->failed || length > cursor_remaining_bytes(cursor))
		return 0;
	cursor->end = cursor->at + length;
	return offset_size;
}

static int read_line_table_header(struct dwarf_line_table_header *table,
				  const struct dwarf_line_sections *sections,
				  struct byte_cursor cursor)
{
	size_t offset_size = read_unit_length_and_offset_size(&cursor);
	table->version = (uint16_t)cursor_read_fixed_uint(&cursor, 2);
	if (offset_size == 0 || table->version < 2 || table->version > 5)
		return -EBADMSG;
	table->address_size = 8;
	if (table->version == 5) {
		table->address_size = cursor_read_byte(&cursor);
		cursor_read_byte(&cursor); /* segment selector size */
	}
	uint64_t head_length = cursor_read_fixed_uint(&cursor, offset_size);
	if (cursor.failed || head_length > cursor_remaining_bytes(&cursor) ||
	    (table->address_size != 8 && table->address_size != 4))
		return -EBADMSG;
	table->program = (struct byte_cursor){cursor.at + head_length, cursor.end, false};
	cursor.end = cursor.at + head_length;
	int error = read_fixed_header_fields(table, &cursor);
	if (error)
		return error;
	if (table->version < 5)
		return read_v4_directories_and_files(table, &cursor);
	error = read_v5_directories_or_files(table, sections, &cursor, offset_size, false);
	return error ? error
		     : read_v5_directories_or_files(table, sections, &cursor, offset_size, true);
}

int dwarf_line_table_init(struct dwarf_line_table_header *table,
			  const struct dwarf_line_sections *sections, uint64_t offset,
			  const char *compilation_directory)
{
	*table = (struct dwarf_line_table_header){.compilation_directory = compilation_directory};
	if (offset >= sections->line.size)
		return -EBADMSG;
	struct byte_cursor cursor = {sections->line.bytes + offset,
				     sections->line.bytes + sections->line.size, false};
	int error = read_line_table_header(table, sections, cursor);
	if (error)
		dwarf_line_table_deinit(table);
	return error;
}

/* Appends a component to a path; an absolute one replaces what is there. */
static bool append_path_component(char path[PATH_MAX], const char *component)
{
	size_t length = component[0] == '/' ? 0 : strlen(path);
	int added = snprintf(path + length, PATH_MAX - length, "%s%s",
			     length > 0 && path[length - 1] != '/' ? "/" : "", component);
	return added >= 0 && (size_t)added < PATH_MAX - length;
}

const char *dwarf_line_table_get_file_path(struct dwarf_line_table_header *table, uint64_t file,
					   struct string_pool *pool, int *error)
{
	if (file >= table->file_count || !table->files[file].name)
		return NULL;
	struct dwarf_line_table_file *entry = &table->files[file];
	if (entry->path)
		return entry->path;
	char path[PATH_MAX] = "";
	const char *directory = entry->directory < table->directory_count
					? table->directories[entry->directory]
					: NULL;
	if ((table->compilation_directory &&
	     !append_path_component(path, table->compilation_directory)) ||
	    (directory && directory != table->compilation_directory &&
	     !append_path_component(path, directory)) ||
	    !append_path_component(path, entry->name))
		return NULL;
	entry->path = string_pool_intern(pool, path);
	if (!entry->path)
		*error = -ENOMEM;
	return entry->path;
}
