/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From .eh_frame, and Go's table of frame sizes, to the table the walker uses: list the FDEs, sort
 * them by address, run each one's program, intern the rules, merge equal neighbours, lay the arrays
 * out. 16 to 35 ns a row, done once a build-id outside of any handler. Memory comes straight from
 * the kernel, because the compiler may run in a thread without a C library of its own.
 *
 * Where two FDEs overlap, the one that starts later wins from its start on. A malformed FDE is left
 * out and counted; only a lack of memory or a section made to cost quadratic time fails the whole.
 */
#include <errno.h>
#include <stdint.h>

#include "core/unwind/cfi.h"
#include "core/unwind/dwarf.h"
#include "core/unwind/go.h"
#include "core/unwind/image.h"
#include "core/unwind/table.h"
#include "core/unwind/unwind.h"
#include "core/unwind/vector.h"

#define RULE_HASH_SLOTS (1u << 17) /* twice the largest number of rules */
#define CIE_CACHE_SLOTS 16u
#define ENTRY_OF_GO     (1u << 31) /* the function's number in Go's table, and this */

/* A function to do: where its code is in the file, where its FDE is in the section. */
struct function_code_and_fde_offsets {
	uint32_t offset;
	uint32_t entry;
};

struct table_compilation_state {
	struct unwind_image *image;
	struct cfi_section section;
	struct unwind_go_table go;
	struct unwind_vector functions,
		functions_sort_buffer; /* of struct function_code_and_fde_offsets */
	uint32_t function_count;
	struct unwind_vector offsets, row_rule_ids, rules;
	uint32_t row_count, rule_count;
	uint32_t *hash;                        /* rule numbers, open addressing */
	uint64_t code_address_to_offset_delta; /* file offset minus address of the function under
						  way */
	uint32_t skipped;
	struct cfi_cie cached_cies[CIE_CACHE_SLOTS];
	bool is_cie_cached[CIE_CACHE_SLOTS];
};

/* ---- rules and rows ---- */

static bool rules_are_equal(const struct unwind_rule *a, const struct unwind_rule *b)
{
	uint64_t x[4], y[4];

	__builtin_memcpy(x, a, sizeof(x));
	__builtin_memcpy(y, b, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
}

static uint32_t hash_rule(const struct unwind_rule *rule)
{
	uint64_t words[4], hash = 0;

	__builtin_memcpy(words, rule, sizeof(words));
	for (unsigned i = 0; i < 4; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u ^ hash >> 29;
	return (uint32_t)(hash >> 32) & (RULE_HASH_SLOTS - 1);
}

/* Number of an equal rule, adding it when new; 0: no memory. When all numbers are taken, further
 * rules count as unsupported (rule 1). */
static uint32_t find_or_add_rule(struct table_compilation_state *compile,
				 const struct unwind_rule *rule)
{
	struct unwind_rule *rules = compile->rules.data;
	uint32_t slot = hash_rule(rule);

	for (; compile->hash[slot]; slot = (slot + 1) & (RULE_HASH_SLOTS - 1))
		if (rules_are_equal(&rules[compile->hash[slot]], rule))
			return compile->hash[slot];
	if (compile->rule_count > UNWIND_TABLE_RULES_MAX - 1)
		return 1;
	if (!unwind_vector_reserve(&compile->rules, (compile->rule_count + 1) * sizeof(*rule)))
		return 0;
	rules = compile->rules.data;
	rules[compile->rule_count] = *rule;
	compile->hash[slot] = compile->rule_count;
	return compile->rule_count++;
}

static bool append_row_dropping_overlaps(struct table_compilation_state *compile, uint32_t offset,
					 uint16_t id)
{
	uint32_t count = compile->row_count;
	uint32_t *offsets = compile->offsets.data;
	uint16_t *ids = compile->row_rule_ids.data;

	while (count && offsets[count - 1] >= offset)
		count--;
	compile->row_count = count;
	if (count ? ids[count - 1] == id : id == 0)
		return true;
	if (!unwind_vector_reserve(&compile->offsets, ((size_t)count + 1) * 4) ||
	    !unwind_vector_reserve(&compile->row_rule_ids, ((size_t)count + 1) * 2))
		return false;
	((uint32_t *)compile->offsets.data)[count] = offset;
	((uint16_t *)compile->row_rule_ids.data)[count] = id;
	compile->row_count = count + 1;
	return true;
}

static bool append_row_of_rule(void *context, uint64_t begin, const struct unwind_rule *rule)
{
	struct table_compilation_state *compile = context;
	uint32_t count = compile->row_count, id;

	/* Most programs return to a rule they had, but the last one is the likeliest by far. */
	if (count && ((uint16_t *)compile->row_rule_ids.data)[count - 1] != 0 &&
	    rules_are_equal((struct unwind_rule *)compile->rules.data +
				    ((uint16_t *)compile->row_rule_ids.data)[count - 1],
			    rule))
		id = ((uint16_t *)compile->row_rule_ids.data)[count - 1];
	else
		id = find_or_add_rule(compile, rule);
	return id && append_row_dropping_overlaps(
			     compile, (uint32_t)(begin + compile->code_address_to_offset_delta),
			     (uint16_t)id);
}

/* ---- the list of functions ---- */

/* The CIE at a position, parsed; NULL when it is malformed. */
static const struct cfi_cie *find_or_parse_cie(struct table_compilation_state *compile,
					       uint64_t position)
{
	uint32_t slot = (uint32_t)(position ^ position >> 8) / 4 % CIE_CACHE_SLOTS;
	struct cfi_cie *cie = &compile->cached_cies[slot];

	if (compile->is_cie_cached[slot] && cie->position == position)
		return cie;
	compile->is_cie_cached[slot] = cfi_cie_parse(&compile->section, position, cie) == 0;
	return compile->is_cie_cached[slot] ? cie : NULL;
}

/* Parses the FDE of an entry; NULL: malformed. */
static const struct cfi_cie *parse_fde_of_entry(struct table_compilation_state *compile,
						const struct cfi_entry *entry, struct cfi_fde *ret)
{
	const struct cfi_cie *cie;

	if (entry->id == 0 || entry->id > entry->id_position)
		return NULL;
	cie = find_or_parse_cie(compile, entry->id_position - entry->id);
	if (!cie || cfi_fde_parse(&compile->section, entry, cie, ret))
		return NULL;
	return cie;
}

static bool append_function_code_and_fde_offsets(struct table_compilation_state *compile,
						 uint64_t offset, uint64_t entry)
{
	size_t count = compile->function_count;

	if (offset > UINT32_MAX || entry > UINT32_MAX) {
		compile->skipped++;
		return true;
	}
	if (!unwind_vector_reserve(&compile->functions,
				   (count + 1) * sizeof(struct function_code_and_fde_offsets)))
		return false;
	((struct function_code_and_fde_offsets *)compile->functions.data)[count] =
		(struct function_code_and_fde_offsets){.offset = (uint32_t)offset,
						       .entry = (uint32_t)entry};
	compile->function_count++;
	return true;
}

/* From the binary search table of .eh_frame_hdr: pairs of 4-byte values relative to the header. *
 * *ret_done false: there is no such table, or it points elsewhere. */
static int list_functions_from_eh_frame_header(struct table_compilation_state *compile,
					       bool *ret_done)
{
	const struct unwind_image *image = compile->image;
	struct dwarf_cursor cursor =
		dwarf_cursor_init(image->eh_frame_hdr, image->eh_frame_hdr_size);
	uint64_t count, base = image->eh_frame_hdr_address;
	uint8_t encodings[4];

	*ret_done = false;
	for (unsigned i = 0; i < 4; i++)
		encodings[i] = (uint8_t)dwarf_read_unsigned(&cursor, 1);
	dwarf_read_encoded_pointer(&cursor, encodings[1], base + 4, base, true);
	count = dwarf_read_encoded_pointer(&cursor, encodings[2], 0, base, false);
	if (cursor.bad || encodings[3] != (DWARF_PE_DATAREL | DWARF_PE_SDATA4) ||
	    encodings[2] == DWARF_PE_OMIT || count == 0 ||
	    count > dwarf_count_bytes_left(&cursor) / 8)
		return 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = base + (uint64_t)dwarf_read_signed(&cursor, 4);
		uint64_t entry =
			base + (uint64_t)dwarf_read_signed(&cursor, 4) - image->eh_frame_address;
		uint64_t offset, size;

		if (entry >= image->eh_frame_size_max) {
			compile->function_count = 0;
			return 0;
		}
		if (!unwind_image_find_file_offset_of_code(image, begin, &offset, &size))
			compile->skipped++;
		else if (!append_function_code_and_fde_offsets(compile, offset, entry))
			return -ENOMEM;
	}
	*ret_done = true;
	return 0;
}

static int list_functions_from_eh_frame(struct table_compilation_state *compile)
{
	struct cfi_entry entry;

	for (uint64_t at = 0; cfi_parse_entry_at(&compile->section, at, &entry); at = entry.end) {
		struct cfi_fde fde;
		uint64_t offset, size;

		if (entry.id == 0)
			continue;
		if (!parse_fde_of_entry(compile, &entry, &fde) ||
		    !unwind_image_find_file_offset_of_code(compile->image, fde.begin, &offset,
							   &size))
			compile->skipped++;
		else if (!append_function_code_and_fde_offsets(compile, offset, at))
			return -ENOMEM;
	}
	return 0;
}

static int list_functions_of_go(struct table_compilation_state *compile)
{
	for (uint64_t i = 0; compile->go.bytes && i < compile->go.function_count; i++) {
		uint64_t address, position, offset, size;

		if (i >= ENTRY_OF_GO ||
		    !unwind_go_get_function(&compile->go, i, &address, &position) ||
		    !unwind_image_find_file_offset_of_code(compile->image, address, &offset, &size))
			compile->skipped++;
		else if (!append_function_code_and_fde_offsets(compile, offset, i | ENTRY_OF_GO))
			return -ENOMEM;
	}
	return 0;
}

/* Stable radix sort by offset, 11 bits a pass; linkers mostly leave nothing to do. */
static int sort_functions_by_code_offset(struct table_compilation_state *compile)
{
	struct function_code_and_fde_offsets *from = compile->functions.data, *to;
	uint32_t count = compile->function_count, positions[2049], sorted = 1;

	while (sorted < count && from[sorted - 1].offset <= from[sorted].offset)
		sorted++;
	if (sorted >= count)
		return 0;
	if (!unwind_vector_reserve(&compile->functions_sort_buffer, count * sizeof(*from)))
		return -ENOMEM;
	to = compile->functions_sort_buffer.data;
	for (unsigned shift = 0; shift < 33; shift += 11) {
		struct function_code_and_fde_offsets *swap = from;

		for (unsigned i = 0; i < 2049; i++)
			positions[i] = 0;
		for (uint32_t i = 0; i < count; i++)
			positions[(from[i].offset >> shift & 2047) + 1]++;
		for (unsigned i = 1; i < 2049; i++)
			positions[i] += positions[i - 1];
		for (uint32_t i = 0; i < count; i++)
			to[positions[from[i].offset >> shift & 2047]++] = from[i];
		from = to;
		to = swap;
	}
	if (from != compile->functions.data) {
		struct unwind_vector swap = compile->functions;

		compile->functions = compile->functions_sort_buffer;
		compile->functions_sort_buffer = swap;
	}
	return 0;
}

/* ---- running ---- */

static int compile_unwind_rows_of_go_function(struct table_compilation_state *compile,
					      const struct function_code_and_fde_offsets *function)
{
	const struct cfi_row_sink sink = {.row = append_row_of_rule, .context = compile};
	uint64_t index = function->entry & ~ENTRY_OF_GO, begin, end, position, next;

	unwind_go_get_function(&compile->go, index + 1, &end, &next);
	if (!unwind_go_get_function(&compile->go, index, &begin, &position) || end <= begin ||
	    function->offset + (end - begin) > UINT32_MAX)
		return 0;
	compile->code_address_to_offset_delta = function->offset - begin;
	if (!unwind_go_emit_rows(&compile->go, position, begin, end, &sink))
		return -ENOMEM;
	return append_row_dropping_overlaps(compile, (uint32_t)(function->offset + (end - begin)),
					    0)
		       ? 0
		       : -ENOMEM;
}

static int compile_unwind_rows_of_function(struct table_compilation_state *compile,
					   const struct function_code_and_fde_offsets *function)
{
	const struct cfi_row_sink sink = {.row = append_row_of_rule, .context = compile};
	const struct cfi_cie *cie;
	struct cfi_entry entry;
	struct cfi_fde fde;
	uint64_t offset, size;
	int status;

	if (compile->go.bytes && function->entry & ENTRY_OF_GO)
		return compile_unwind_rows_of_go_function(compile, function);
	if (!cfi_parse_entry_at(&compile->section, function->entry, &entry)) {
		compile->skipped++;
		return 0;
	}
	cie = parse_fde_of_entry(compile, &entry, &fde);
	if (!cie ||
	    !unwind_image_find_file_offset_of_code(compile->image, fde.begin, &offset, &size) ||
	    offset != function->offset) {
		compile->skipped++;
		return 0;
	}
	if (fde.range > size)
		fde.range = size;
	if (fde.range == 0 || offset + fde.range > UINT32_MAX)
		return 0;
	compile->code_address_to_offset_delta = offset - fde.begin;
	status = cfi_fde_emit_rows(&compile->section, cie, &fde, &sink);
	if (status)
		return status;
	/* Whatever follows has no rule until another FDE says so. */
	return append_row_dropping_overlaps(compile, (uint32_t)(offset + fde.range), 0) ? 0
											: -ENOMEM;
}

static int compile_unwind_rows_of_all_functions(struct table_compilation_state *compile)
{
	const struct function_code_and_fde_offsets *functions = compile->functions.data;

	for (uint32_t i = 0; i < compile->function_count; i++) {
		int status;

		/* Among FDEs for the same code the first one counts. */
		if (i && functions[i].offset == functions[i - 1].offset)
			continue;
		status = compile_unwind_rows_of_function(compile, &functions[i]);
		if (status)
			return status;
	}
	return compile->row_count ? 0 : -ENODATA;
}

/* ---- assembly ---- */

static void copy_bytes_by_words(void *to, const void *from, size_t size)
{
	const uint8_t *source = from;
	uint8_t *target = to;

	for (size_t i = 0; i + 8 <= size; i += 8)
		__builtin_memcpy(target + i, source + i, 8);
	for (size_t i = size & ~(size_t)7; i < size; i++)
		target[i] = source[i];
}

static void fill_page_index(uint32_t *index, const uint32_t *offsets,
			    const struct unwind_table *table)
{
	uint32_t row = 0;

	for (uint32_t page = 0; page <= table->pages; page++) {
		uint64_t start = table->first + ((uint64_t)page << UNWIND_TABLE_PAGE_SHIFT);

		while (row + 1 < table->rows && offsets[row + 1] <= start)
			row++;
		index[page] = row;
	}
}

static int assemble_unwind_table(const struct table_compilation_state *compile,
				 struct unwind_table **ret, size_t *ret_size)
{
	const uint32_t *offsets = compile->offsets.data;
	uint32_t last = offsets[compile->row_count - 1];
	struct unwind_table header = {
		.magic = UNWIND_TABLE_MAGIC,
		.version = UNWIND_TABLE_VERSION,
		.image_size = compile->image->size,
		.first = offsets[0] & ~((1u << UNWIND_TABLE_PAGE_SHIFT) - 1),
		.rows = compile->row_count,
		.rules = compile->rule_count,
		.expression_op_count = compile->section.expression_op_count,
		.skipped = compile->skipped,
	};
	struct unwind_table *table;
	struct unwind_table_array_pointers arrays;

	header.pages = ((last - header.first) >> UNWIND_TABLE_PAGE_SHIFT) + 1;
	header.size = unwind_table_compute_size(&header);
	table = unwind_map_memory(header.size);
	if (!table)
		return -ENOMEM;
	*table = header;
	arrays = unwind_table_find_arrays(table);
	copy_bytes_by_words((void *)(uintptr_t)arrays.offsets, offsets, 4 * (size_t)header.rows);
	copy_bytes_by_words((void *)(uintptr_t)arrays.rule_ids, compile->row_rule_ids.data,
			    2 * (size_t)header.rows);
	copy_bytes_by_words((void *)(uintptr_t)arrays.rules, compile->rules.data,
			    sizeof(struct unwind_rule) * (size_t)header.rules);
	copy_bytes_by_words(
		(void *)(uintptr_t)arrays.expression_ops, compile->section.expression_ops.data,
		sizeof(struct unwind_expression_operation) * (size_t)header.expression_op_count);
	fill_page_index((uint32_t *)(uintptr_t)arrays.index, arrays.offsets, table);
	*ret = table;
	*ret_size = header.size;
	return 0;
}

static int init_compilation_state(struct table_compilation_state *compile)
{
	const struct unwind_rule nothing = {.cfa = {.kind = UNWIND_LOCATION_UNDEFINED}};
	const struct unwind_rule unsupported = {.cfa = {.kind = UNWIND_LOCATION_UNSUPPORTED}};
	struct unwind_image *image = compile->image;

	compile->section.bytes = image->eh_frame;
	compile->section.size = image->eh_frame_size_max;
	compile->section.address = image->eh_frame_address;
	compile->section.eh_frame_hdr_address = image->eh_frame_hdr_address;
	compile->section.budget = 64 * image->eh_frame_size_max + (1u << 20);
	compile->hash = unwind_map_memory(RULE_HASH_SLOTS * sizeof(uint32_t));
	if (!compile->hash || !unwind_vector_reserve(&compile->rules, sizeof(nothing)))
		return -ENOMEM;
	*(struct unwind_rule *)compile->rules.data = nothing;
	compile->rule_count = 1;
	return find_or_add_rule(compile, &unsupported) ? 0 : -ENOMEM;
}

static int compile_unwind_table_of_parsed_image(struct table_compilation_state *compile,
						struct unwind_table **ret, size_t *ret_size)
{
	bool done = false;
	int status = init_compilation_state(compile);

	if (!status && compile->image->eh_frame_hdr)
		status = list_functions_from_eh_frame_header(compile, &done);
	if (!status && !done)
		status = list_functions_from_eh_frame(compile);
	if (!status)
		status = list_functions_of_go(compile);
	if (!status)
		status = sort_functions_by_code_offset(compile);
	if (!status)
		status = compile_unwind_rows_of_all_functions(compile);
	if (!status)
		status = assemble_unwind_table(compile, ret, ret_size);
	return status;
}

int unwind_compile_table_of_image(struct unwind_image *image, struct unwind_table **ret,
				  size_t *ret_size)
{
	struct table_compilation_state *compile;
	struct unwind_go_table go = {.bytes = NULL};
	int status = unwind_image_parse(image);

	if ((!status || status == -ENODATA) && unwind_go_find_table(image, &go))
		status = 0;
	if (status)
		return status;
	compile = unwind_map_memory(sizeof(*compile));
	if (!compile)
		return -ENOMEM;
	compile->image = image;
	compile->go = go;
	status = compile_unwind_table_of_parsed_image(compile, ret, ret_size);
	unwind_vector_free(&compile->functions);
	unwind_vector_free(&compile->functions_sort_buffer);
	unwind_vector_free(&compile->offsets);
	unwind_vector_free(&compile->row_rule_ids);
	unwind_vector_free(&compile->rules);
	unwind_vector_free(&compile->section.expression_ops);
	unwind_unmap_memory(compile->hash, RULE_HASH_SLOTS * sizeof(uint32_t));
	unwind_unmap_memory(compile, sizeof(*compile));
	return status;
}

int unwind_compile_table_of_file_bytes(const uint8_t *bytes, size_t size, struct unwind_table **ret,
				       size_t *ret_size)
{
	struct unwind_image image = {.bytes = bytes, .size = size};

	return unwind_compile_table_of_image(&image, ret, ret_size);
}

int unwind_compile_table_of_mapped_image(const uint8_t *base, size_t size,
					 struct unwind_table **ret, size_t *ret_size)
{
	struct unwind_image image = {.bytes = base, .size = size, .mapped = true};

	return unwind_compile_table_of_image(&image, ret, ret_size);
}
