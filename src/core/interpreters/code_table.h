/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ids of code objects, once a process: a hash table without locks that only grows. A code object is
 * known by its address and by what it points to, since addresses are used again. Ids are places in
 * the table plus one. Two threads may add the same one at once and give it two ids, which readers
 * join by its names.
 *
 * Signal-safe, but for code_table_create().
 */
#ifndef KYMO_CORE_INTERPRETERS_CODE_TABLE_H
#define KYMO_CORE_INTERPRETERS_CODE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CODE_TABLE_SLOTS  (1u << 17)
#define CODE_TABLE_PROBES 32u

struct code_identity {
	uint64_t address, name, file, line_table;
	uint32_t first_line;
};

struct code_slot {
	_Atomic uint64_t address; /* 0: free; CODE_SLOT_BUSY: being filled */
	uint64_t name, file, line_table;
	uint32_t first_line;
	_Atomic uint32_t described_in_run; /* code_table_run when it was described in the spool */
	bool is_hidden;                    /* then: it is not shown */
	/* The region that its calls are (src/python); meaningful once it is known. */
	_Atomic uint8_t has_call_region;
	uint32_t call_region;
} __attribute__((aligned(64))); /* one line of cache */

#define CODE_SLOT_BUSY 1u

extern struct code_slot *_Atomic code_table_slots; /* NULL: there is none yet */
extern _Atomic uint32_t code_table_run;

static inline uint32_t code_table_hash(uint64_t address)
{
	return (uint32_t)((address >> 4) * 0x9e3779b97f4a7c15ull >> 47) & (CODE_TABLE_SLOTS - 1);
}

static inline uint32_t code_slot_get_id(const struct code_slot *slots, const struct code_slot *slot)
{
	return (uint32_t)(slot - slots) + 1;
}

static inline bool code_slot_is(const struct code_slot *slot, const struct code_identity *code)
{
	return slot->name == code->name && slot->file == code->file &&
	       slot->line_table == code->line_table && slot->first_line == code->first_line;
}

/* The newest slot of a code object that has or had this address; NULL: none ever had, or so many
 * had that this cannot be said. */
struct code_slot *code_table_find_address(uint64_t address);
/* NULL: the table is full. */
struct code_slot *code_table_find_or_add(const struct code_identity *code);
bool code_table_create(void);

#endif
