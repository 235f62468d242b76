/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known about communicators: asked once each, kept in a small table by handle. An entry
 * that has to make way for another is asked for anew.
 *
 * Threads: a lock around copying an entry in or out; MPI is never called with it held. A forked
 * child may not use MPI, so it never meets a lock that another thread held.
 */
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "wrappers/mpi_private.h"

#define ENTRIES         256 /* a power of two */
#define WAYS            4
#define WORLD_RANKS_MAX 1024 /* larger groups are not translated: it takes time for each pair */

static struct mpi_communicator entries[ENTRIES];
static _Atomic uint32_t lock, described;

static void take_lock(void)
{
	while (atomic_exchange_explicit(&lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
}

static void drop_lock(void)
{
	atomic_store_explicit(&lock, 0, memory_order_release);
}

static struct mpi_communicator *first_way(uintptr_t handle)
{
	uint64_t hash = handle * 0x9e3779b97f4a7c15ull;

	return &entries[hash >> 32 & (ENTRIES - 1) & ~(uint64_t)(WAYS - 1)];
}

static bool look_up(uintptr_t handle, struct mpi_communicator *ret)
{
	struct mpi_communicator *entry = first_way(handle);
	bool found = false;

	take_lock();
	for (int i = 0; i < WAYS && !found; i++) {
		found = entry[i].handle == handle;
		if (found)
			*ret = entry[i];
		if (found && !ret->has_ranks)
			ret->world_ranks = NULL;
	}
	drop_lock();
	return found;
}

/* The memory of ranks stays with its place in the table for good, because another thread may still
 * be reading it. */
static void keep_ranks(struct mpi_communicator *entry, const int *ranks, int count)
{
	if (!entry->world_ranks) {
		void *memory = sys_mmap(NULL, WORLD_RANKS_MAX * sizeof(int), PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (sys_failed(memory))
			return;
		entry->world_ranks = memory;
	}
	memcpy(entry->world_ranks, ranks, (size_t)count * sizeof(int));
}

static void store(struct mpi_communicator *communicator, const int *ranks)
{
	struct mpi_communicator *entry = first_way(communicator->handle);
	int *memory;
	uint32_t way = 0;

	take_lock();
	while (way < WAYS && entry[way].handle)
		way++;
	if (way == WAYS)
		way = (uint32_t)(communicator->handle >> 12) % WAYS;
	entry += way;
	if (ranks)
		keep_ranks(entry, ranks, communicator->peers);
	memory = entry->world_ranks;
	communicator->world_ranks = ranks ? memory : NULL;
	*entry = *communicator;
	entry->world_ranks = memory;
	entry->has_ranks = communicator->world_ranks != NULL;
	drop_lock();
}

void mpi_communicator_forget(uintptr_t handle)
{
	struct mpi_communicator *entry = first_way(handle);

	if (!handle)
		return;
	take_lock();
	for (int i = 0; i < WAYS; i++) {
		if (entry[i].handle == handle)
			entry[i].handle = 0;
	}
	drop_lock();
}

static void describe_name(struct mpi_communicator *communicator)
{
	char name[1024] = ""; /* MPI_MAX_OBJECT_NAME: 128 in MPICH, 64 in Open MPI */
	int length = 0;
	uint32_t number;

	if (!mpi_library.comm_get_name(communicator->handle, name, &length) && length > 0 &&
	    (size_t)length < sizeof(name)) {
		size_t kept = (size_t)length < sizeof(communicator->name)
				      ? (size_t)length
				      : sizeof(communicator->name) - 1;

		memcpy(communicator->name, name, kept);
		communicator->name[kept] = 0;
		return;
	}
	number = atomic_fetch_add_explicit(&described, 1, memory_order_relaxed) + 1;
	memcpy(communicator->name, "communicator ", 13);
	length = 13;
	for (uint32_t digit = 1000000000; digit; digit /= 10) {
		if (number >= digit)
			communicator->name[length++] = (char)('0' + number / digit % 10);
	}
	communicator->name[length] = 0;
}

static bool translate(const struct mpi_communicator *communicator, int *ret)
{
	uintptr_t group = 0, world = 0;
	int ranks[WORLD_RANKS_MAX];
	int error = communicator->inter
			    ? mpi_library.comm_remote_group(communicator->handle, &group)
			    : mpi_library.comm_group(communicator->handle, &group);

	if (error)
		return false;
	error = mpi_library.comm_group(mpi_library.world, &world);
	if (!error) {
		for (int i = 0; i < communicator->peers; i++)
			ranks[i] = i;
		error = mpi_library.group_translate_ranks(group, communicator->peers, ranks, world,
							  ret);
		mpi_library.group_free(&world);
	}
	mpi_library.group_free(&group);
	return !error;
}

static bool describe(struct mpi_communicator *communicator)
{
	uintptr_t handle = communicator->handle;
	int inter = 0;

	if (mpi_library.comm_test_inter(handle, &inter) ||
	    mpi_library.comm_rank(handle, &communicator->rank) ||
	    mpi_library.comm_size(handle, &communicator->size))
		return false;
	communicator->inter = inter;
	communicator->peers = communicator->size;
	if (inter && (!mpi_library.comm_remote_size ||
		      mpi_library.comm_remote_size(handle, &communicator->peers)))
		return false;
	communicator->is_world = handle == mpi_library.world;
	describe_name(communicator);
	return true;
}

void mpi_communicator_get(uintptr_t handle, struct mpi_communicator *ret)
{
	int ranks[WORLD_RANKS_MAX];
	bool translatable;

	if (look_up(handle, ret))
		return;
	memset(ret, 0, sizeof(*ret));
	ret->handle = handle;
	if (!describe(ret)) {
		ret->handle = 0;
		return;
	}
	translatable = !ret->is_world && ret->peers <= WORLD_RANKS_MAX && mpi_library.comm_group &&
		       mpi_library.comm_remote_group && mpi_library.group_translate_ranks &&
		       mpi_library.group_free;
	store(ret, translatable && translate(ret, ranks) ? ranks : NULL);
}
