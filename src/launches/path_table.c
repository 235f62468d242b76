/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See path_table.h.
 */
#include "launches/path_table.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "common/fold_hash.h"
#include "common/syscalls.h"

#define PROBES_MAX 64u

/* Free while first_hash is 0; without a number while it is being filled. */
struct path_slot {
	_Atomic uint64_t first_hash, second_hash;
	_Atomic uint32_t number;
};

static struct path_table {
	_Atomic uint32_t path_count;
	struct path_slot slots[PATH_TABLE_SLOTS];
} * _Atomic path_table;

static uint64_t hash_frames(const uint64_t *frames, uint32_t count, uint64_t seed, uint64_t factor)
{
	uint64_t hash = seed ^ count;

	for (uint32_t i = 0; i < count; i++)
		hash = fold_hash_multiply(hash ^ frames[i], factor);
	return hash;
}

struct path_identity path_identity_of_frames(const uint64_t *frames, uint32_t count,
					     uint64_t variant)
{
	return (struct path_identity){hash_frames(frames, count, variant, FOLD_HASH_FACTOR) | 1,
				      hash_frames(frames, count, ~variant, 0xd6e8feb86659fd93ull)};
}

bool path_table_create(void)
{
	struct path_table *made, *none = NULL;

	if (atomic_load_explicit(&path_table, memory_order_acquire))
		return true;
	made = sys_mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sys_mmap_failed(made))
		return false;
	sys_madvise(made, sizeof(*made), MADV_WIPEONFORK);
	if (!atomic_compare_exchange_strong(&path_table, &none, made))
		sys_munmap(made, sizeof(*made));
	return true;
}

void path_table_clear(void)
{
	struct path_table *table = atomic_load_explicit(&path_table, memory_order_acquire);

	if (table)
		sys_madvise(table, sizeof(*table), MADV_DONTNEED);
}

uint32_t path_table_find(struct path_identity path)
{
	struct path_table *table = atomic_load_explicit(&path_table, memory_order_acquire);
	uint32_t at = (uint32_t)(path.first_hash >> 32);

	for (uint32_t i = 0; table && i < PROBES_MAX; i++, at++) {
		struct path_slot *slot = &table->slots[at % PATH_TABLE_SLOTS];
		/* acquire: with the number come the hashes */
		uint32_t number = atomic_load_explicit(&slot->number, memory_order_acquire);
		uint64_t hash = atomic_load_explicit(&slot->first_hash, memory_order_relaxed);

		if (!hash)
			return 0;
		if (number && hash == path.first_hash &&
		    atomic_load_explicit(&slot->second_hash, memory_order_relaxed) ==
			    path.second_hash)
			return number;
	}
	return 0;
}

uint32_t path_table_allocate_number(void)
{
	struct path_table *table = atomic_load_explicit(&path_table, memory_order_acquire);

	if (!table ||
	    atomic_load_explicit(&table->path_count, memory_order_relaxed) >= PATH_TABLE_PATHS_MAX)
		return 0;
	return 1 + atomic_fetch_add_explicit(&table->path_count, 1, memory_order_relaxed);
}

void path_table_add(struct path_identity path, uint32_t number)
{
	struct path_table *table = atomic_load_explicit(&path_table, memory_order_acquire);
	uint32_t at = (uint32_t)(path.first_hash >> 32);

	for (uint32_t i = 0; table && i < PROBES_MAX; i++, at++) {
		struct path_slot *slot = &table->slots[at % PATH_TABLE_SLOTS];
		uint64_t none = 0;

		if (!atomic_compare_exchange_strong_explicit(&slot->first_hash, &none,
							     path.first_hash, memory_order_relaxed,
							     memory_order_relaxed))
			continue;
		atomic_store_explicit(&slot->second_hash, path.second_hash, memory_order_relaxed);
		/* release: who sees the number sees the hashes */
		atomic_store_explicit(&slot->number, number, memory_order_release);
		return;
	}
}
