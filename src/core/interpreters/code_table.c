/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code_table.h.
 */
#include "core/interpreters/code_table.h"

#include <stddef.h>
#include <sys/mman.h>

#include "common/syscalls.h"

struct code_slot *_Atomic code_table_slots;
_Atomic uint32_t code_table_run = 1;

bool code_table_create(void)
{
	struct code_slot *none = NULL;
	void *memory;

	if (atomic_load(&code_table_slots))
		return true;
	memory = sys_mmap(NULL, CODE_TABLE_SLOTS * sizeof(struct code_slot), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_mmap_failed(memory))
		return false;
	/* A forked child describes what it meets in a spool file of its own. */
	sys_madvise(memory, CODE_TABLE_SLOTS * sizeof(struct code_slot), MADV_WIPEONFORK);
	if (!atomic_compare_exchange_strong(&code_table_slots, &none, memory))
		sys_munmap(memory, CODE_TABLE_SLOTS * sizeof(struct code_slot));
	return true;
}

struct code_slot *code_table_find_address(uint64_t address)
{
	struct code_slot *slots = atomic_load_explicit(&code_table_slots, memory_order_acquire);
	struct code_slot *found = NULL;
	uint32_t at = code_table_hash(address);

	for (uint32_t i = 0; slots && i < CODE_TABLE_PROBES; i++) {
		struct code_slot *slot = &slots[(at + i) & (CODE_TABLE_SLOTS - 1)];
		uint64_t known = atomic_load_explicit(&slot->address, memory_order_acquire);

		if (!known)
			return found;
		if (known == address)
			found = slot;
	}
	return NULL;
}

/* Among the places at `at`, `step` further, and so on. */
static struct code_slot *find_or_add_from(struct code_slot *slots, uint32_t at, uint32_t step,
					  const struct code_identity *code)
{
	for (uint32_t i = 0; i < CODE_TABLE_PROBES; i++) {
		struct code_slot *slot = &slots[(at + i * step) & (CODE_TABLE_SLOTS - 1)];
		uint64_t known = atomic_load_explicit(&slot->address, memory_order_acquire);

		if (!known && atomic_compare_exchange_strong_explicit(
				      &slot->address, &known, CODE_SLOT_BUSY, memory_order_acquire,
				      memory_order_acquire)) {
			slot->name = code->name;
			slot->file = code->file;
			slot->line_table = code->line_table;
			slot->first_line = code->first_line;
			/* release: who sees the address sees the rest */
			atomic_store_explicit(&slot->address, code->address, memory_order_release);
			return slot;
		}
		if (known == code->address && code_slot_is(slot, code))
			return slot;
	}
	return NULL;
}

static uint64_t hash_identity(const struct code_identity *code)
{
	const uint64_t words[] = {code->address, code->name, code->file, code->line_table,
				  code->first_line};
	uint64_t hash = 0;

	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash;
}

/* Programs that import much make thousands of code objects that run once, many of them at one
 * address: what finds no place by its address finds one by all that it is known by, in steps of its
 * own, since such places lie in rows. */
struct code_slot *code_table_find_or_add(const struct code_identity *code)
{
	struct code_slot *slots = atomic_load_explicit(&code_table_slots, memory_order_acquire);
	struct code_slot *slot;
	uint64_t hash;

	if (!slots)
		return NULL;
	slot = find_or_add_from(slots, code_table_hash(code->address), 1, code);
	if (slot)
		return slot;
	hash = hash_identity(code);
	return find_or_add_from(slots, (uint32_t)hash, (uint32_t)(hash >> 32) | 1, code);
}
