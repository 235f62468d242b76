/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From .eh_frame to the table the walker uses: list the FDEs, sort them by address, run each one's
 * program, intern the rules, merge equal neighbours, lay the arrays out. 16 to 35 ns a row, done
 * once a build-id outside of any handler. Memory comes straight from the kernel, because the
 * compiler may run in a thread without a C library of its own.
 *
 * Where two FDEs overlap, the one that starts later wins from its start on. A malformed FDE is left
 * out and counted; only a lack of memory or a section made to cost quadratic time fails the whole.
 */
#include <errno.h>
#include <stdint.h>

#include "core/unwind.h"
#include "core/unwind_cfi.h"
#include "core/unwind_dwarf.h"
#include "core/unwind_image.h"
#include "core/unwind_table.h"
#include "core/unwind_vector.h"

#define COMPILE_HASH_SIZE (1u << 17) /* twice the largest number of rules */
#define COMPILE_CIES      16u

/* A function to do: where its code is in the file, where its FDE is in the section. */
struct compile_function {
	uint32_t offset;
	uint32_t entry;
};

struct compile {
	struct unwind_image *image;
	struct cfi_section section;
	struct unwind_vector functions, spare; /* of struct compile_function */
	uint32_t function_count;
	struct unwind_vector offsets, rule_ids, rules;
	uint32_t row_count, rule_count;
	uint32_t *hash;      /* rule numbers, open addressing */
	uint64_t code_delta; /* file offset minus address of the function under way */
	uint32_t skipped;
	struct cfi_cie cies[COMPILE_CIES];
	bool cie_known[COMPILE_CIES];
};

/* ---- rules and rows ---- */

static bool rule_equal(const struct unwind_rule *a, const struct unwind_rule *b)
{
	uint64_t x[4], y[4];

	__builtin_memcpy(x, a, sizeof(x));
	__builtin_memcpy(y, b, sizeof(y));
	return ((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]) | (x[3] ^ y[3])) == 0;
}

static uint32_t rule_hash(const struct unwind_rule *rule)
{
	uint64_t words[4], hash = 0;

	__builtin_memcpy(words, rule, sizeof(words));
	for (unsigned i = 0; i < 4; i++)
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u ^ hash >> 29;
	return (uint32_t)(hash >> 32) & (COMPILE_HASH_SIZE - 1);
}

/* Number of an equal rule, adding it when new; 0: no memory. When all numbers are taken, further
 * rules count as unsupported (rule 1). */
static uint32_t rule_intern(struct compile *compile, const struct unwind_rule *rule)
{
	struct unwind_rule *rules = compile->rules.data;
	uint32_t slot = rule_hash(rule);

	for (; compile->hash[slot]; slot = (slot + 1) & (COMPILE_HASH_SIZE - 1))
		if (rule_equal(&rules[compile->hash[slot]], rule))
			return compile->hash[slot];
	if (compile->rule_count > UNWIND_RULES_MAX - 1)
		return 1;
	if (!unwind_vector_reserve(&compile->rules, (compile->rule_count + 1) * sizeof(*rule)))
		return 0;
	rules = compile->rules.data;
	rules[compile->rule_count] = *rule;
	compile->hash[slot] = compile->rule_count;
	return compile->rule_count++;
}

static bool row_append(struct compile *compile, uint32_t offset, uint16_t id)
{
	uint32_t count = compile->row_count;
	uint32_t *offsets = compile->offsets.data;
	uint16_t *ids = compile->rule_ids.data;

	while (count && offsets[count - 1] >= offset)
		count--;
	compile->row_count = count;
	if (count ? ids[count - 1] == id : id == 0)
		return true;
	if (!unwind_vector_reserve(&compile->offsets, ((size_t)count + 1) * 4) ||
	    !unwind_vector_reserve(&compile->rule_ids, ((size_t)count + 1) * 2))
		return false;
	((uint32_t *)compile->offsets.data)[count] = offset;
	((uint16_t *)compile->rule_ids.data)[count] = id;
	compile->row_count = count + 1;
	return true;
}

static bool compile_row(void *context, uint64_t begin, const struct unwind_rule *rule)
{
	struct compile *compile = context;
	uint32_t count = compile->row_count, id;

	/* Most programs return to a rule they had, but the last one is the likeliest by far. */
	if (count && ((uint16_t *)compile->rule_ids.data)[count - 1] != 0 &&
	    rule_equal((struct unwind_rule *)compile->rules.data +
			       ((uint16_t *)compile->rule_ids.data)[count - 1],
		       rule))
		id = ((uint16_t *)compile->rule_ids.data)[count - 1];
	else
		id = rule_intern(compile, rule);
	return id && row_append(compile, (uint32_t)(begin + compile->code_delta), (uint16_t)id);
}

/* ---- the list of functions ---- */

/* The CIE at a position, parsed; NULL when it is malformed. */
static const struct cfi_cie *compile_cie(struct compile *compile, uint64_t position)
{
	uint32_t slot = (uint32_t)(position ^ position >> 8) / 4 % COMPILE_CIES;
	struct cfi_cie *cie = &compile->cies[slot];

	if (compile->cie_known[slot] && cie->position == position)
		return cie;
	compile->cie_known[slot] = cfi_cie_parse(&compile->section, position, cie) == 0;
	return compile->cie_known[slot] ? cie : NULL;
}

/* Parses the FDE of an entry; NULL: malformed. */
static const struct cfi_cie *compile_fde(struct compile *compile, const struct cfi_entry *entry,
					 struct cfi_fde *ret)
{
	const struct cfi_cie *cie;

	if (entry->id == 0 || entry->id > entry->id_position)
		return NULL;
	cie = compile_cie(compile, entry->id_position - entry->id);
	if (!cie || cfi_fde_parse(&compile->section, entry, cie, ret))
		return NULL;
	return cie;
}

static bool function_append(struct compile *compile, uint64_t offset, uint64_t entry)
{
	size_t count = compile->function_count;

	if (offset > UINT32_MAX || entry > UINT32_MAX) {
		compile->skipped++;
		return true;
	}
	if (!unwind_vector_reserve(&compile->functions,
				   (count + 1) * sizeof(struct compile_function)))
		return false;
	((struct compile_function *)compile->functions.data)[count] =
		(struct compile_function){.offset = (uint32_t)offset, .entry = (uint32_t)entry};
	compile->function_count++;
	return true;
}

/* From the binary search table of .eh_frame_hdr: pairs of 4-byte values relative to the header. *
 * *ret_done false: there is no such table, or it points elsewhere. */
static int functions_from_header(struct compile *compile, bool *ret_done)
{
	const struct unwind_image *image = compile->image;
	struct dwarf_cursor cursor = dwarf_cursor(image->header, image->header_size);
	uint64_t count, base = image->header_address;
	uint8_t encodings[4];

	*ret_done = false;
	for (unsigned i = 0; i < 4; i++)
		encodings[i] = (uint8_t)dwarf_unsigned(&cursor, 1);
	dwarf_pointer(&cursor, encodings[1], base + 4, base, true);
	count = dwarf_pointer(&cursor, encodings[2], 0, base, false);
	if (cursor.bad || encodings[3] != (DWARF_PE_DATAREL | DWARF_PE_SDATA4) ||
	    encodings[2] == DWARF_PE_OMIT || count == 0 || count > dwarf_left(&cursor) / 8)
		return 0;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = base + (uint64_t)dwarf_signed(&cursor, 4);
		uint64_t entry = base + (uint64_t)dwarf_signed(&cursor, 4) - image->frame_address;
		uint64_t offset, size;

		if (entry >= image->frame_size) {
			compile->function_count = 0;
			return 0;
		}
		if (!unwind_image_code(image, begin, &offset, &size))
			compile->skipped++;
		else if (!function_append(compile, offset, entry))
			return -ENOMEM;
	}
	*ret_done = true;
	return 0;
}

static int functions_from_section(struct compile *compile)
{
	struct cfi_entry entry;

	for (uint64_t at = 0; cfi_entry_at(&compile->section, at, &entry); at = entry.end) {
		struct cfi_fde fde;
		uint64_t offset, size;

		if (entry.id == 0)
			continue;
		if (!compile_fde(compile, &entry, &fde) ||
		    !unwind_image_code(compile->image, fde.begin, &offset, &size))
			compile->skipped++;
		else if (!function_append(compile, offset, at))
			return -ENOMEM;
	}
	return 0;
}

/* Stable radix sort by offset, 11 bits a pass; linkers mostly leave nothing to do. */
static int functions_sort(struct compile *compile)
{
	struct compile_function *from = compile->functions.data, *to;
	uint32_t count = compile->function_count, positions[2049], sorted = 1;

	while (sorted < count && from[sorted - 1].offset <= from[sorted].offset)
		sorted++;
	if (sorted >= count)
		return 0;
	if (!unwind_vector_reserve(&compile->spare, count * sizeof(*from)))
		return -ENOMEM;
	to = compile->spare.data;
	for (unsigned shift = 0; shift < 33; shift += 11) {
		struct compile_function *swap = from;

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

		compile->functions = compile->spare;
		compile->spare = swap;
	}
	return 0;
}

/* ---- running ---- */

static int compile_function(struct compile *compile, const struct compile_function *function)
{
	const struct cfi_sink sink = {.row = compile_row, .context = compile};
	const struct cfi_cie *cie;
	struct cfi_entry entry;
	struct cfi_fde fde;
	uint64_t offset, size;
	int status;

	if (!cfi_entry_at(&compile->section, function->entry, &entry)) {
		compile->skipped++;
		return 0;
	}
	cie = compile_fde(compile, &entry, &fde);
	if (!cie || !unwind_image_code(compile->image, fde.begin, &offset, &size) ||
	    offset != function->offset) {
		compile->skipped++;
		return 0;
	}
	if (fde.range > size)
		fde.range = size;
	if (fde.range == 0 || offset + fde.range > UINT32_MAX)
		return 0;
	compile->code_delta = offset - fde.begin;
	status = cfi_fde_run(&compile->section, cie, &fde, &sink);
	if (status)
		return status;
	/* Whatever follows has no rule until another FDE says so. */
	return row_append(compile, (uint32_t)(offset + fde.range), 0) ? 0 : -ENOMEM;
}

static int compile_functions(struct compile *compile)
{
	const struct compile_function *functions = compile->functions.data;

	for (uint32_t i = 0; i < compile->function_count; i++) {
		int status;

		/* Of FDEs for the same code the first one counts. */
		if (i && functions[i].offset == functions[i - 1].offset)
			continue;
		status = compile_function(compile, &functions[i]);
		if (status)
			return status;
	}
	return compile->row_count ? 0 : -ENODATA;
}

/* ---- assembly ---- */

static void copy_words(void *to, const void *from, size_t size)
{
	const uint8_t *source = from;
	uint8_t *target = to;

	for (size_t i = 0; i + 8 <= size; i += 8)
		__builtin_memcpy(target + i, source + i, 8);
	for (size_t i = size & ~(size_t)7; i < size; i++)
		target[i] = source[i];
}

static void compile_index(uint32_t *index, const uint32_t *offsets,
			  const struct unwind_table *table)
{
	uint32_t row = 0;

	for (uint32_t page = 0; page <= table->pages; page++) {
		uint64_t start = table->first + ((uint64_t)page << UNWIND_PAGE_SHIFT);

		while (row + 1 < table->rows && offsets[row + 1] <= start)
			row++;
		index[page] = row;
	}
}

static int compile_assemble(const struct compile *compile, struct unwind_table **ret,
			    size_t *ret_size)
{
	const uint32_t *offsets = compile->offsets.data;
	uint32_t last = offsets[compile->row_count - 1];
	struct unwind_table header = {
		.magic = UNWIND_TABLE_MAGIC,
		.version = UNWIND_TABLE_VERSION,
		.image_size = compile->image->size,
		.first = offsets[0] & ~((1u << UNWIND_PAGE_SHIFT) - 1),
		.rows = compile->row_count,
		.rules = compile->rule_count,
		.ops = compile->section.op_count,
		.skipped = compile->skipped,
	};
	struct unwind_table *table;
	struct unwind_arrays arrays;

	header.pages = ((last - header.first) >> UNWIND_PAGE_SHIFT) + 1;
	header.size = unwind_table_size(&header);
	table = unwind_map(header.size);
	if (!table)
		return -ENOMEM;
	*table = header;
	arrays = unwind_table_arrays(table);
	copy_words((void *)(uintptr_t)arrays.offsets, offsets, 4 * (size_t)header.rows);
	copy_words((void *)(uintptr_t)arrays.rule_ids, compile->rule_ids.data,
		   2 * (size_t)header.rows);
	copy_words((void *)(uintptr_t)arrays.rules, compile->rules.data,
		   sizeof(struct unwind_rule) * (size_t)header.rules);
	copy_words((void *)(uintptr_t)arrays.ops, compile->section.ops.data,
		   sizeof(struct unwind_op) * (size_t)header.ops);
	compile_index((uint32_t *)(uintptr_t)arrays.index, arrays.offsets, table);
	*ret = table;
	*ret_size = header.size;
	return 0;
}

static int compile_prepare(struct compile *compile)
{
	const struct unwind_rule nothing = {.cfa = {.kind = UNWIND_UNDEFINED}};
	const struct unwind_rule unsupported = {.cfa = {.kind = UNWIND_UNSUPPORTED}};
	struct unwind_image *image = compile->image;

	compile->section.bytes = image->frame;
	compile->section.size = image->frame_size;
	compile->section.address = image->frame_address;
	compile->section.header_address = image->header_address;
	compile->section.budget = 64 * image->frame_size + (1u << 20);
	compile->hash = unwind_map(COMPILE_HASH_SIZE * sizeof(uint32_t));
	if (!compile->hash || !unwind_vector_reserve(&compile->rules, sizeof(nothing)))
		return -ENOMEM;
	*(struct unwind_rule *)compile->rules.data = nothing;
	compile->rule_count = 1;
	return rule_intern(compile, &unsupported) ? 0 : -ENOMEM;
}

static int compile_run(struct compile *compile, struct unwind_table **ret, size_t *ret_size)
{
	bool done = false;
	int status = compile_prepare(compile);

	if (!status && compile->image->header)
		status = functions_from_header(compile, &done);
	if (!status && !done)
		status = functions_from_section(compile);
	if (!status)
		status = functions_sort(compile);
	if (!status)
		status = compile_functions(compile);
	if (!status)
		status = compile_assemble(compile, ret, ret_size);
	return status;
}

int unwind_compile_image(struct unwind_image *image, struct unwind_table **ret, size_t *ret_size)
{
	struct compile *compile;
	int status = unwind_image_parse(image);

	if (status)
		return status;
	compile = unwind_map(sizeof(*compile));
	if (!compile)
		return -ENOMEM;
	compile->image = image;
	status = compile_run(compile, ret, ret_size);
	unwind_vector_free(&compile->functions);
	unwind_vector_free(&compile->spare);
	unwind_vector_free(&compile->offsets);
	unwind_vector_free(&compile->rule_ids);
	unwind_vector_free(&compile->rules);
	unwind_vector_free(&compile->section.ops);
	unwind_unmap(compile->hash, COMPILE_HASH_SIZE * sizeof(uint32_t));
	unwind_unmap(compile, sizeof(*compile));
	return status;
}

int unwind_compile(const uint8_t *bytes, size_t size, struct unwind_table **ret, size_t *ret_size)
{
	struct unwind_image image = {.bytes = bytes, .size = size};

	return unwind_compile_image(&image, ret, ret_size);
}

int unwind_compile_mapped(const uint8_t *base, size_t size, struct unwind_table **ret,
			  size_t *ret_size)
{
	struct unwind_image image = {.bytes = base, .size = size, .mapped = true};

	return unwind_compile_image(&image, ret, ret_size);
}
