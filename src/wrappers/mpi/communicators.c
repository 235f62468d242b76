/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is known about communicators: asked once each, kept in a small table by handle. An entry
 * that has to make way for another is asked for again.
 *
 * Threads: a lock around copying an entry in or out; MPI is never called with it held. A forked
 * child may not use MPI, so it never meets a lock that another thread held.
 */
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/base/text.h"
#include "wrappers/mpi/private.h"

#define COMMUNICATOR_TABLE_ENTRIES 256 /* a power of two */
#define COMMUNICATOR_TABLE_WAYS    4
#define OPEN_MPI_DEFAULT_NAME      "MPI COMMUNICATOR "
#define MEMBERS_LISTED_MAX         8
#define TRANSLATED_RANKS_MAX                                                                       \
	1024 /* larger groups are not translated: it takes time for each pair */

static struct mpi_communicator known_communicators[COMMUNICATOR_TABLE_ENTRIES];
static _Atomic uint32_t communicators_lock;

/* How many communicators of the same members were made. */
#define MEMBER_SETS_MAX 512 /* a power of two; what finds no place is not numbered */
static struct member_set_count {
	uint64_t members; /* a hash; 0: free */
	uint32_t made;
} member_set_counts[MEMBER_SETS_MAX];

static void lock_communicators(void)
{
	while (atomic_exchange_explicit(&communicators_lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
}

static void unlock_communicators(void)
{
	atomic_store_explicit(&communicators_lock, 0, memory_order_release);
}

static struct mpi_communicator *get_hash_ways_of_communicator(uintptr_t handle)
{
	uint64_t hash = handle * 0x9e3779b97f4a7c15ull;

	return &known_communicators[hash >> 32 & (COMMUNICATOR_TABLE_ENTRIES - 1) &
				    ~(uint64_t)(COMMUNICATOR_TABLE_WAYS - 1)];
}

static struct mpi_communicator *find_entry(uintptr_t handle)
{
	struct mpi_communicator *entry = get_hash_ways_of_communicator(handle);

	for (int i = 0; i < COMMUNICATOR_TABLE_WAYS; i++) {
		if (entry[i].handle == handle)
			return &entry[i];
	}
	return NULL;
}

static void copy_entry(const struct mpi_communicator *entry, struct mpi_communicator *ret)
{
	*ret = *entry;
	if (!ret->has_world_ranks)
		ret->world_ranks = NULL;
}

static bool copy_known_communicator(uintptr_t handle, struct mpi_communicator *ret)
{
	struct mpi_communicator *entry;

	lock_communicators();
	entry = find_entry(handle);
	if (entry)
		copy_entry(entry, ret);
	unlock_communicators();
	return entry != NULL;
}

bool mpi_communicator_find(uintptr_t handle, uint32_t serial, struct mpi_communicator *ret)
{
	return handle && copy_known_communicator(handle, ret) && ret->serial == serial;
}

/* The memory of ranks stays with its place in the table for good, because another thread may still
 * be reading it. */
static void store_world_ranks(struct mpi_communicator *entry, const int *ranks, int count)
{
	if (!entry->world_ranks) {
		void *memory = sys_mmap(NULL, TRANSLATED_RANKS_MAX * sizeof(int),
					PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (sys_mmap_failed(memory))
			return;
		entry->world_ranks = memory;
	}
	memcpy(entry->world_ranks, ranks, (size_t)count * sizeof(int));
}

static void store_communicator(struct mpi_communicator *communicator, const int *ranks)
{
	static uint32_t serials;
	struct mpi_communicator *entry = get_hash_ways_of_communicator(communicator->handle);
	int *memory;
	uint32_t way = 0;

	lock_communicators();
	if (find_entry(communicator->handle)) { /* another thread was faster */
		copy_entry(find_entry(communicator->handle), communicator);
		unlock_communicators();
		return;
	}
	while (way < COMMUNICATOR_TABLE_WAYS && entry[way].handle)
		way++;
	if (way == COMMUNICATOR_TABLE_WAYS)
		way = (uint32_t)(communicator->handle >> 12) % COMMUNICATOR_TABLE_WAYS;
	entry += way;
	if (ranks)
		store_world_ranks(entry, ranks, communicator->peer_count);
	memory = entry->world_ranks;
	communicator->world_ranks = ranks ? memory : NULL;
	communicator->serial = ++serials;
	*entry = *communicator;
	entry->world_ranks = memory;
	entry->has_world_ranks = communicator->world_ranks != NULL;
	unlock_communicators();
}

void mpi_communicator_forget(uintptr_t handle)
{
	struct mpi_communicator *entry;

	if (!handle)
		return;
	lock_communicators();
	entry = find_entry(handle);
	if (entry)
		entry->handle = 0;
	unlock_communicators();
}

static uint64_t hash_members(const struct mpi_communicator *communicator, const int *ranks)
{
	uint64_t hash = 0xcbf29ce484222325ull + (uint64_t)communicator->is_intercommunicator;

	hash = (hash ^ (uint64_t)communicator->peer_count) * 0x100000001b3ull;
	for (int i = 0; ranks && i < communicator->peer_count; i++)
		hash = (hash ^ (uint64_t)(uint32_t)ranks[i]) * 0x100000001b3ull;
	return hash ? hash : 1;
}

/* 1 for the first one that is made of these members; 0: there are too many sets of members. */
static uint32_t count_made_communicator(uint64_t members)
{
	uint32_t number = 0;

	lock_communicators();
	for (uint32_t i = 0; i < MEMBER_SETS_MAX && !number; i++) {
		struct member_set_count *set =
			&member_set_counts[(members + i) & (MEMBER_SETS_MAX - 1)];

		if (set->members && set->members != members)
			continue;
		set->members = members;
		number = ++set->made;
	}
	unlock_communicators();
	return number;
}

/* Processes that were spawned or connected to have no rank in this world. */
static bool members_are_in_world(const struct mpi_communicator *communicator, const int *ranks)
{
	for (int i = 0; ranks && i < communicator->peer_count; i++) {
		if (ranks[i] < 0)
			return false;
	}
	return ranks != NULL;
}

static bool members_are_consecutive(const struct mpi_communicator *communicator, const int *ranks)
{
	for (int i = 1; i < communicator->peer_count; i++) {
		if (ranks[i] != ranks[0] + i)
			return false;
	}
	return true;
}

/* "ranks 0-3", "ranks 0,2,5", "8 ranks #1f2e3d4c", by world ranks in the order of the communicator;
 * behind it " (2)", for the second one of these members. The same text in all of them. */
static void format_name_by_members(struct mpi_communicator *communicator, const int *ranks,
				   uint32_t made)
{
	struct text_buffer text = text_buffer_init(communicator->name, sizeof(communicator->name));
	int count = communicator->peer_count;
	bool listed = members_are_in_world(communicator, ranks);

	if (communicator->is_intercommunicator)
		text_append_string(&text, "to ");
	if (listed && count > 1 && members_are_consecutive(communicator, ranks)) {
		text_append_string(&text, "ranks ");
		text_append_unsigned(&text, (uint64_t)ranks[0]);
		text_append_string(&text, "-");
		text_append_unsigned(&text, (uint64_t)ranks[count - 1]);
	} else if (listed && count <= MEMBERS_LISTED_MAX) {
		text_append_string(&text, count == 1 ? "rank " : "ranks ");
		for (int i = 0; i < count; i++) {
			text_append_string(&text, i ? "," : "");
			text_append_unsigned(&text, (uint64_t)(uint32_t)ranks[i]);
		}
	} else {
		text_append_unsigned(&text, (uint64_t)count);
		text_append_string(&text, " ranks");
	}
	if (listed && count > MEMBERS_LISTED_MAX && !members_are_consecutive(communicator, ranks)) {
		text_append_string(&text, " #");
		text_append_hex(&text, hash_members(communicator, ranks) & 0xffffffffu);
	}
	if (made) {
		text_append_string(&text, " (");
		text_append_unsigned(&text, made);
		text_append_string(&text, ")");
	}
}

/* As the program or MPI calls it. */
static void fill_communicator_name(struct mpi_communicator *communicator)
{
	char name[1024] = ""; /* MPI_MAX_OBJECT_NAME: 128 in MPICH, 64 in Open MPI */
	int length = 0;
	size_t kept;

	if (mpi_library.pmpi_comm_get_name(communicator->handle, name, &length) || length <= 0 ||
	    (size_t)length >= sizeof(name))
		return;
	/* Open MPI's own names have numbers that need not be the same in all processes. */
	if (!strncmp(name, OPEN_MPI_DEFAULT_NAME, strlen(OPEN_MPI_DEFAULT_NAME)))
		return;
	kept = (size_t)length < sizeof(communicator->name) ? (size_t)length
							   : sizeof(communicator->name) - 1;
	memcpy(communicator->name, name, kept);
	communicator->name[kept] = 0;
	communicator->is_named_by_program = true;
}

static bool translate_ranks_to_world(const struct mpi_communicator *communicator, int *ret)
{
	uintptr_t group = 0, world = 0;
	int ranks[TRANSLATED_RANKS_MAX];
	int error = communicator->is_intercommunicator
			    ? mpi_library.pmpi_comm_remote_group(communicator->handle, &group)
			    : mpi_library.pmpi_comm_group(communicator->handle, &group);

	if (error)
		return false;
	error = mpi_library.pmpi_comm_group(mpi_library.world_communicator, &world);
	if (!error) {
		for (int i = 0; i < communicator->peer_count; i++)
			ranks[i] = i;
		error = mpi_library.pmpi_group_translate_ranks(group, communicator->peer_count,
							       ranks, world, ret);
		mpi_library.pmpi_group_free(&world);
	}
	mpi_library.pmpi_group_free(&group);
	return !error;
}

static bool query_communicator(struct mpi_communicator *communicator)
{
	uintptr_t handle = communicator->handle;
	int inter = 0;

	if (mpi_library.pmpi_comm_test_inter(handle, &inter) ||
	    mpi_library.pmpi_comm_rank(handle, &communicator->rank) ||
	    mpi_library.pmpi_comm_size(handle, &communicator->size))
		return false;
	communicator->is_intercommunicator = inter;
	communicator->peer_count = communicator->size;
	if (inter && (!mpi_library.pmpi_comm_remote_size ||
		      mpi_library.pmpi_comm_remote_size(handle, &communicator->peer_count)))
		return false;
	communicator->is_world = handle == mpi_library.world_communicator;
	fill_communicator_name(communicator);
	return true;
}

#define CONTEXT_UNKNOWN 0u
#define CONTEXT_WORLD   1u
#define CONTEXT_SELF    2u

/* The two groups of an intercommunicator know each other by different members. */
static uint64_t get_context(const struct mpi_communicator *communicator, const int *members)
{
	uint64_t hash;

	if (communicator->is_world)
		return CONTEXT_WORLD;
	if (communicator->handle == mpi_library.self_communicator)
		return CONTEXT_SELF;
	if (!communicator->made || communicator->is_intercommunicator ||
	    !members_are_in_world(communicator, members))
		return CONTEXT_UNKNOWN;
	hash = (hash_members(communicator, members) ^ communicator->made) * 0x9e3779b97f4a7c15ull;
	return hash <= CONTEXT_SELF ? CONTEXT_SELF + 1 : hash;
}

static bool can_translate(const struct mpi_communicator *communicator)
{
	return !communicator->is_world && communicator->peer_count <= TRANSLATED_RANKS_MAX &&
	       mpi_library.pmpi_comm_group && mpi_library.pmpi_comm_remote_group &&
	       mpi_library.pmpi_group_translate_ranks && mpi_library.pmpi_group_free;
}

/* `made`: 0 where it is not known; UINT32_MAX: it has just been made. */
static void query_and_store_communicator(uintptr_t handle, uint32_t made,
					 struct mpi_communicator *ret)
{
	int ranks[TRANSLATED_RANKS_MAX];
	const int *members = NULL;

	memset(ret, 0, sizeof(*ret));
	ret->handle = handle;
	if (!query_communicator(ret)) {
		ret->handle = 0;
		return;
	}
	if (can_translate(ret) && translate_ranks_to_world(ret, ranks))
		members = ranks;
	ret->made = made == UINT32_MAX ? count_made_communicator(hash_members(ret, members)) : made;
	ret->context = get_context(ret, members);
	if (!ret->is_named_by_program)
		format_name_by_members(ret, members, ret->made);
	ret->is_new = true;
	store_communicator(ret, members);
}

void mpi_communicator_look_up(uintptr_t handle, struct mpi_communicator *ret)
{
	if (!copy_known_communicator(handle, ret))
		query_and_store_communicator(handle, 0, ret);
}

void mpi_communicator_note_creation(uintptr_t handle)
{
	struct mpi_communicator communicator;

	if (!handle)
		return;
	mpi_communicator_forget(handle);
	query_and_store_communicator(handle, UINT32_MAX, &communicator);
}

void mpi_communicator_note_copy(uintptr_t from, uintptr_t handle)
{
	struct mpi_communicator communicator;
	int ranks[TRANSLATED_RANKS_MAX];
	const int *members = NULL;

	if (!handle)
		return;
	mpi_communicator_look_up(from, &communicator);
	if (!communicator.handle)
		return;
	for (int i = 0; i < communicator.peer_count && i < TRANSLATED_RANKS_MAX; i++)
		ranks[i] = communicator.world_ranks ? communicator.world_ranks[i] : i;
	if ((communicator.world_ranks || communicator.is_world) &&
	    communicator.peer_count <= TRANSLATED_RANKS_MAX)
		members = ranks;
	mpi_communicator_forget(handle);
	communicator.handle = handle;
	communicator.is_world = communicator.is_named_by_program = false;
	communicator.made = count_made_communicator(hash_members(&communicator, members));
	communicator.context = get_context(&communicator, members);
	communicator.is_new = true;
	format_name_by_members(&communicator, members, communicator.made);
	store_communicator(&communicator, members);
}

void mpi_communicator_rename(uintptr_t handle)
{
	struct mpi_communicator communicator;

	if (!handle || !copy_known_communicator(handle, &communicator))
		return;
	mpi_communicator_forget(handle);
	query_and_store_communicator(handle, communicator.made, &communicator);
}

void mpi_communicator_set_defined(const struct mpi_communicator *communicator)
{
	struct mpi_communicator *entry;

	lock_communicators();
	entry = find_entry(communicator->handle);
	if (entry && entry->serial == communicator->serial)
		entry->is_new = false;
	unlock_communicators();
}

void mpi_communicator_format_members(const struct mpi_communicator *communicator, char *ret,
				     size_t size)
{
	struct text_buffer text = text_buffer_init(ret, size);
	const int *ranks = communicator->world_ranks;
	int count = communicator->peer_count;

	for (int i = 0, end; i < count && (ranks || communicator->is_world); i = end) {
		int first = ranks ? ranks[i] : i;

		for (end = i + 1; end < count && (!ranks || ranks[end] == first + end - i);)
			end++;
		if (first < 0 || text.length + 24 > size)
			break;
		text_append_string(&text, i ? "," : "");
		text_append_unsigned(&text, (uint64_t)first);
		text_append_string(&text, end - i > 1 ? "-" : "");
		if (end - i > 1)
			text_append_unsigned(&text, (uint64_t)(first + end - i - 1));
		if (end < count && text.length + 24 > size)
			text_append_string(&text, ",...");
	}
}
