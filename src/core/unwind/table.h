/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The compiled table of one module, as it stands in memory and in the cache file.
 *
 *   header | page index | row offsets | row rules | rules | expression operations
 *
 * A row says: from this offset on, until the next row's, frames are recovered by that rule. Offsets
 * count from the start of the ELF file (or of the image in memory, for the vDSO), so that an
 * address maps to a row by the mapping's start and file offset alone. Rules are few (about 1,100
 * distinct ones over a dozen large modules), so a row is an offset and a 16-bit rule number. The
 * page index holds, for each KiB of code, the row in force at its start: a lookup is one index load
 * and a binary search over a handful of rows. All positions follow from the counts in the header.
 */
#ifndef KYMO_CORE_UNWIND_TABLE_H
#define KYMO_CORE_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_TABLE_MAGIC       "KYMOUNW"
#define UNWIND_TABLE_VERSION     2u
#define UNWIND_TABLE_PAGE_SHIFT  10u
#define UNWIND_TABLE_RULES_MAX   65535u
#define UNWIND_TABLE_OPS_MAX     16384u
#define UNWIND_OPERAND_STACK_MAX 8u /* operands of an expression under way */
#define UNWIND_BUILD_ID_SIZE_MAX 32u

/* DWARF register numbers of x86-64 (System V psABI, figure 3.36). */
enum {
	DWARF_REGISTER_RBX = 3,
	DWARF_REGISTER_RBP = 6,
	DWARF_REGISTER_RSP = 7,
	DWARF_REGISTER_R12 = 12,
	DWARF_REGISTER_RIP = 16
};

/* Where a value of the caller is found. */
enum unwind_location_kind {
	UNWIND_LOCATION_UNDEFINED, /* lost; for the return address: this is the outermost frame */
	UNWIND_LOCATION_SAME_REGISTER,        /* still in its register */
	UNWIND_LOCATION_AT_CFA_OFFSET,        /* in memory at CFA + value */
	UNWIND_LOCATION_CFA_PLUS_OFFSET,      /* CFA + value itself */
	UNWIND_LOCATION_REGISTER_PLUS_OFFSET, /* register + value itself */
	UNWIND_LOCATION_AT_EXPRESSION_RESULT, /* in memory where the operations at index `value`
						 point */
	UNWIND_LOCATION_EXPRESSION_RESULT,    /* result of the operations at index `value` */
	UNWIND_LOCATION_UCONTEXT,    /* cfa only: sp points at a ucontext with all registers */
	UNWIND_LOCATION_UNSUPPORTED, /* cfa only: the frame cannot be recovered from this table */
	UNWIND_LOCATION_KIND_COUNT
};

struct unwind_value_location {
	uint8_t kind;
	uint8_t reg;
	uint16_t reserved;
	int32_t value;
};

struct unwind_rule {
	struct unwind_value_location cfa, ra, bp, bx;
};

/* Straight-line operations on a small stack; a DWARF expression without branches. */
enum unwind_op_code {
	UNWIND_OP_END, /* the result is on top */
	UNWIND_OP_CONSTANT,
	UNWIND_OP_REGISTER_PLUS_CONSTANT, /* push reg + operand */
	UNWIND_OP_CFA,
	UNWIND_OP_DEREF,
	UNWIND_OP_ADD_CONSTANT,
	UNWIND_OP_PLUS,
	UNWIND_OP_MINUS,
	UNWIND_OP_MUL,
	UNWIND_OP_AND,
	UNWIND_OP_OR,
	UNWIND_OP_XOR,
	UNWIND_OP_SHL,
	UNWIND_OP_SHR,
	UNWIND_OP_SHRA,
	UNWIND_OP_EQ,
	UNWIND_OP_NE,
	UNWIND_OP_LT,
	UNWIND_OP_LE,
	UNWIND_OP_GT,
	UNWIND_OP_GE,
	UNWIND_OP_NEG,
	UNWIND_OP_NOT,
	UNWIND_OP_DUP,
	UNWIND_OP_DROP,
	UNWIND_OP_SWAP,
	UNWIND_OP_ROT,
	UNWIND_OP_PICK, /* push a copy of entry `reg` counted from the top */
	UNWIND_OP_COUNT
};

struct unwind_expression_operation {
	uint8_t code;
	uint8_t reg;
	uint8_t reserved[6];
	int64_t operand;
};

struct unwind_table {
	char magic[8];
	uint32_t version;
	uint32_t build_id_size; /* 0 when compiled from memory */
	uint8_t build_id[UNWIND_BUILD_ID_SIZE_MAX];
	uint64_t image_size; /* of the ELF file: tells apart variants that share a build-id */
	uint64_t size;       /* of the table with this header */
	uint32_t first;      /* offset that page 0 starts at */
	uint32_t pages;      /* the index has one entry more */
	uint32_t rows;
	uint32_t rules; /* rule 0: no information here */
	uint32_t expression_op_count;
	uint32_t skipped;  /* FDEs left out as malformed */
	uint64_t checksum; /* in the cache: of all bytes, with 0 here */
};

_Static_assert(sizeof(struct unwind_value_location) == 8, "location is 8 bytes");
_Static_assert(sizeof(struct unwind_rule) == 32, "rule is half a cache line");
_Static_assert(sizeof(struct unwind_expression_operation) == 16, "operation is 16 bytes");
_Static_assert(sizeof(struct unwind_table) % 8 == 0, "arrays behind the header are aligned");

/* The arrays of a table. */
struct unwind_table_array_pointers {
	const uint32_t *index;
	const uint32_t *offsets;
	const uint16_t *rule_ids;
	const struct unwind_rule *rules;
	const struct unwind_expression_operation *expression_ops;
};

static inline size_t unwind_round_up_to_8(size_t size)
{
	return (size + 7) & ~(size_t)7;
}

/* Size that the counts of the header ask for. */
static inline uint64_t unwind_table_compute_size(const struct unwind_table *table)
{
	return sizeof(*table) + unwind_round_up_to_8(4 * ((uint64_t)table->pages + 1)) +
	       unwind_round_up_to_8(4 * (uint64_t)table->rows) +
	       unwind_round_up_to_8(2 * (uint64_t)table->rows) +
	       sizeof(struct unwind_rule) * (uint64_t)table->rules +
	       sizeof(struct unwind_expression_operation) * (uint64_t)table->expression_op_count;
}

static inline struct unwind_table_array_pointers
unwind_table_find_arrays(const struct unwind_table *table)
{
	const uint8_t *at = (const uint8_t *)(table + 1);
	struct unwind_table_array_pointers arrays;

	arrays.index = (const uint32_t *)at;
	at += unwind_round_up_to_8(4 * ((size_t)table->pages + 1));
	arrays.offsets = (const uint32_t *)at;
	at += unwind_round_up_to_8(4 * (size_t)table->rows);
	arrays.rule_ids = (const uint16_t *)at;
	at += unwind_round_up_to_8(2 * (size_t)table->rows);
	arrays.rules = (const struct unwind_rule *)at;
	at += sizeof(struct unwind_rule) * (size_t)table->rules;
	arrays.expression_ops = (const struct unwind_expression_operation *)at;
	return arrays;
}

/* Rule in force at an offset; NULL where the table says nothing. Trusts a validated table. */
static inline const struct unwind_rule *unwind_table_find_rule(const struct unwind_table *table,
							       uint64_t offset)
{
	struct unwind_table_array_pointers arrays;
	uint64_t page;
	uint32_t low, high;

	if (offset < table->first)
		return NULL;
	page = (offset - table->first) >> UNWIND_TABLE_PAGE_SHIFT;
	if (page >= table->pages)
		return NULL;
	arrays = unwind_table_find_arrays(table);
	low = arrays.index[page];
	high = arrays.index[page + 1] + 1;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (arrays.offsets[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	if (arrays.offsets[low] > offset || arrays.rule_ids[low] == 0)
		return NULL;
	return &arrays.rules[arrays.rule_ids[low]];
}

/* True when the operations from `start` on are well-formed: known codes, an end, and never more
 * than UNWIND_OPERAND_STACK_MAX nor too few operands. */
bool unwind_ops_are_valid(const struct unwind_expression_operation *ops, uint32_t count,
			  uint32_t start);

#endif
