/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See store.h.
 *
 * A communicator names its current chunk by one word: generation in the low half, index + 1 in the
 * high one. Taking a record adds to the chunk's own word, whose low half is its generation as well:
 * a thread that was away for so long that the chunk has been given to somebody else sees that they
 * differ, and leaves the record it took empty.
 */
#include "nccl/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "nccl/clock.h"
#include "nccl/helper.h"

#define CHUNKS_ADDED_AT_START_COUNT    128u /* chunks: 2 MiB */
#define READY_CHUNK_FIRST_TARGET_COUNT 128u /* chunks kept ready */
#define CHUNKS_ADDED_IN_CALLBACK_COUNT 32u  /* chunks that a callback makes where there are none */
#define READY_CHUNK_TARGET_COUNT_MAX   2048u

struct nccl_record_store store;

/* ---- stacks of chunks ---- */

static void push_chunk_on_stack(struct store_chunk_stack *stack, uint32_t chunk)
{
	uint64_t head = atomic_load_explicit(&stack->head, memory_order_relaxed);

	do {
		atomic_store_explicit(&store.chunk_tracking[chunk].next, (uint32_t)head,
				      memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&stack->head, &head, (head & ~0xffffffffull) | (chunk + 1), memory_order_release,
		memory_order_relaxed));
	atomic_fetch_add_explicit(&stack->count, 1, memory_order_relaxed);
}

static uint32_t pop_chunk_from_stack(struct store_chunk_stack *stack)
{
	uint64_t head = atomic_load_explicit(&stack->head, memory_order_acquire), next;

	do {
		if (!(uint32_t)head)
			return STORE_CHUNK_INDEX_NONE;
		next = atomic_load_explicit(&store.chunk_tracking[(uint32_t)head - 1].next,
					    memory_order_relaxed);
		next |= ((head >> 32) + 1) << 32;
	} while (!atomic_compare_exchange_weak_explicit(
		&stack->head, &head, next, memory_order_acquire, memory_order_acquire));
	atomic_fetch_sub_explicit(&stack->count, 1, memory_order_relaxed);
	return (uint32_t)head - 1;
}

/* ---- callbacks ---- */

static bool grow_store_in_callback(void);

/* Makes a ready chunk one of `kind`; returns the word that names it, or 0. */
static uint64_t pop_ready_chunk_and_assign_kind(unsigned kind, uint32_t communicator)
{
	uint32_t chunk = pop_chunk_from_stack(&store.ready), generation;
	struct nccl_chunk_header *header;

	/* The own thread did not come to it, because it has no processor, say. */
	if (chunk == STORE_CHUNK_INDEX_NONE && grow_store_in_callback())
		chunk = pop_chunk_from_stack(&store.ready);

	if (atomic_load_explicit(&store.ready.count, memory_order_relaxed) <
	    RELAXED_LOAD(store.ready_chunk_target_count) / 2)
		helper_wake();
	if (chunk == STORE_CHUNK_INDEX_NONE) {
		atomic_store_explicit(&store.was_starved_of_chunks, 1, memory_order_relaxed);
		return 0;
	}
	header = store_get_chunk_header(chunk);
	RELAXED_STORE(header->record_size, store_get_record_size(kind));
	RELAXED_STORE(header->communicator, communicator);
	RELAXED_STORE(header->sequence,
		      atomic_fetch_add_explicit(&store.sequence, 1, memory_order_relaxed) + 1);
	RELAXED_STORE(header->kind, kind);
	store.chunk_tracking[chunk].kind = (uint8_t)kind;
	generation = RELAXED_LOAD(header->generation);
	__atomic_store_n(store_get_chunk_taken_count_word(chunk), generation, __ATOMIC_RELEASE);
	atomic_store_explicit(&store.chunk_tracking[chunk].state, STORE_CHUNK_CURRENT,
			      memory_order_release);
	return (uint64_t)(chunk + 1) << 32 | generation;
}

void store_retire_chunk(uint32_t chunk)
{
	atomic_store_explicit(&store.chunk_tracking[chunk].state, STORE_CHUNK_RETIRED,
			      memory_order_release);
	push_chunk_on_stack(&store.retired, chunk);
}

/* The chunk is full, or there is none: another one, which other threads may have brought already.
 */
static uint64_t replace_full_chunk(_Atomic uint64_t *current, uint64_t old, unsigned kind,
				   uint32_t communicator)
{
	uint64_t fresh = pop_ready_chunk_and_assign_kind(kind, communicator), seen = old;

	if (!fresh)
		return 0;
	/* Should the old one be somebody else's by now, this does not become the next one. */
	RELAXED_STORE(store_get_chunk_header((uint32_t)(fresh >> 32) - 1)->first,
		      old ? RELAXED_LOAD(store_get_chunk_header((uint32_t)(old >> 32) - 1)->first) +
				      store_get_chunk_capacity(kind)
			  : 0);
	if (atomic_compare_exchange_strong_explicit(current, &seen, fresh, memory_order_acq_rel,
						    memory_order_acquire)) {
		if (old)
			store_retire_chunk((uint32_t)(old >> 32) - 1);
		return fresh;
	}
	/* Not needed: it is empty, and goes the way of full ones. */
	store_retire_chunk((uint32_t)(fresh >> 32) - 1);
	return seen;
}

struct store_record_slot store_take_record_slot_in_next_chunk(_Atomic uint64_t *current,
							      unsigned kind, uint32_t communicator)
{
	uint64_t word = atomic_load_explicit(current, memory_order_acquire), taken;
	struct store_record_slot place = {0, NULL, 0};

	for (int tries = 0; tries < 8; tries++) {
		uint32_t chunk = (uint32_t)(word >> 32) - 1;

		if (word) {
			taken = __atomic_fetch_add(store_get_chunk_taken_count_word(chunk),
						   1ull << 32, __ATOMIC_ACQUIRE);
			if ((uint32_t)taken == (uint32_t)word &&
			    taken >> 32 < store_get_chunk_capacity(kind)) {
				place.record = store_get_record_address(chunk, kind,
									(uint32_t)(taken >> 32));
				place.id = store_record_to_id(place.record, (uint32_t)word);
				place.record_ordinal =
					RELAXED_LOAD(store_get_chunk_header(chunk)->first) +
					(taken >> 32);
				break;
			}
		}
		word = replace_full_chunk(current, word, kind, communicator);
		if (!word)
			break;
	}
	return place;
}

/* ---- the file ---- */

static int reserve_disk_blocks(int descriptor, uint64_t from, uint64_t size)
{
	static const char zeros[65536];

	if (!fallocate(descriptor, 0, (off_t)from, (off_t)size))
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
		return -errno;
	/* A file system without fallocate: what is written has its blocks. */
	for (uint64_t done = 0; done < size;) {
		uint64_t piece = size - done < sizeof(zeros) ? size - done : sizeof(zeros);
		ssize_t written = pwrite(descriptor, zeros, piece, (off_t)(from + done));

		if (written <= 0)
			return written ? -errno : -ENOSPC;
		done += (uint64_t)written;
	}
	return 0;
}

/* Else the first write to each page would be a fault, of microseconds, in a callback. */
static void write_zero_to_each_page(uint8_t *from, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += 4096)
		__atomic_store_n(from + at, 0, __ATOMIC_RELAXED);
}

/* A limit on the size of files is enforced by a signal, which kills. */
static int reserve_disk_blocks_without_signal(int descriptor, uint64_t from, uint64_t size)
{
	struct timespec none = {0, 0};
	sigset_t file_size, before;
	int result;

	sigemptyset(&file_size);
	sigaddset(&file_size, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &file_size, &before);
	result = reserve_disk_blocks(descriptor, from, size);
	if (result == -EFBIG && !sigismember(&before, SIGXFSZ))
		sigtimedwait(&file_size, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* `size` bytes more of the file and of memory. Shared, so that a fork copies none of it. */
static int reserve_and_map_next_part(int descriptor, uint64_t size)
{
	uint64_t from = atomic_load_explicit(&store.mapped, memory_order_relaxed);
	int result = reserve_disk_blocks_without_signal(descriptor, from, size);

	if (result)
		return result;
	if (mmap(store.base + from, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return -errno;
	write_zero_to_each_page(store.base + from, size);
	atomic_store_explicit(&store.mapped, from + size, memory_order_release);
	return 0;
}

/* The file is opened each time: programs close descriptors that are not theirs. */
static int grow_store_with_lock_held(uint32_t chunks)
{
	uint32_t first = atomic_load_explicit(&store.chunk_count, memory_order_relaxed);
	int descriptor, result;

	if (chunks > store.chunk_count_limit - first)
		chunks = store.chunk_count_limit - first;
	if (!chunks)
		return -EDQUOT;
	descriptor = own_file_reopen(&store.file);
	if (descriptor < 0)
		return descriptor;
	result = reserve_and_map_next_part(descriptor, (uint64_t)chunks * NCCL_CHUNK_SIZE);
	close(descriptor);
	if (result)
		return result;
	for (uint32_t i = first; i < first + chunks; i++) {
		struct nccl_chunk_header *header = store_get_chunk_header(i);

		RELAXED_STORE(header->magic, NCCL_CHUNK_MAGIC);
		RELAXED_STORE(header->generation, 1);
		atomic_store_explicit(&store.chunk_tracking[i].state, STORE_CHUNK_READY,
				      memory_order_relaxed);
	}
	atomic_store_explicit(&store.chunk_count, first + chunks, memory_order_release);
	__atomic_store_n(&store.header->file_size, atomic_load(&store.mapped), __ATOMIC_RELEASE);
	for (uint32_t i = first + chunks; i-- > first;)
		push_chunk_on_stack(&store.ready, i);
	return 0;
}

static pthread_mutex_t store_growth_lock = PTHREAD_MUTEX_INITIALIZER;

static int grow_store(uint32_t chunks)
{
	int result;

	pthread_mutex_lock(&store_growth_lock);
	result = grow_store_with_lock_held(chunks);
	pthread_mutex_unlock(&store_growth_lock);
	return result;
}

static int create_store_file(const char *directory)
{
	int descriptor = -1;

	for (unsigned number = 0; number < 10000 && descriptor < 0; number++) {
		if (snprintf(store.file.path, sizeof(store.file.path), "%s/nccl-%ld-%u.nccl",
			     directory, (long)getpid(), number) >= (int)sizeof(store.file.path))
			return -ENAMETOOLONG;
		descriptor = open(store.file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (descriptor < 0 && errno != EEXIST)
			return -errno;
		store.number = number;
	}
	if (descriptor < 0)
		return -EEXIST;
	own_file_identify(&store.file, descriptor);
	return descriptor;
}

static uint64_t generate_store_id_nonce(void)
{
	uint16_t nonce;

	if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce))
		nonce = (uint16_t)(nccl_clock_read_ns(CLOCK_MONOTONIC) / 1000 * 40503 ^
				   (uint64_t)getpid());
	return (uint64_t)NCCL_ID_MAGIC << 60 | (uint64_t)(nonce & 0xfff) << 48;
}

static void *reserve_address_space(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Everything that is known only while the file is new; base and chunk_count_limit are set. */
static int initialize_store_file(int descriptor)
{
	int result = reserve_and_map_next_part(descriptor, NCCL_CHUNKS_OFFSET);

	if (result)
		return result;
	store.header = (struct nccl_file_header *)store.base;
	store.header->file_number = store.number;
	store.header->nonce = (uint32_t)(store.id_nonce_bits >> 48 & 0xfff);
	return grow_store(CHUNKS_ADDED_AT_START_COUNT);
}

int store_create(const char *directory, uint64_t limit, bool ring)
{
	uint64_t least = NCCL_CHUNKS_OFFSET + STORE_FILE_LIMIT_BYTES_LEAST;
	int descriptor = create_store_file(directory), result;

	if (descriptor < 0)
		return descriptor;
	limit = limit < least                        ? least
		: limit > STORE_FILE_LIMIT_BYTES_MAX ? STORE_FILE_LIMIT_BYTES_MAX
						     : limit;
	store.is_ring = ring;
	store.ready_chunk_target_count = READY_CHUNK_FIRST_TARGET_COUNT;
	store.chunk_count_limit = (uint32_t)((limit - NCCL_CHUNKS_OFFSET) / NCCL_CHUNK_SIZE);
	store.id_nonce_bits = generate_store_id_nonce();
	store.chunk_tracking =
		reserve_address_space(store.chunk_count_limit * sizeof(*store.chunk_tracking));
	store.retired_order =
		reserve_address_space(store.chunk_count_limit * sizeof(*store.retired_order));
	store.base =
		mmap(NULL, limit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!store.chunk_tracking || !store.retired_order || store.base == MAP_FAILED)
		result = -ENOMEM;
	else
		result = initialize_store_file(descriptor);
	close(descriptor);
	if (result) {
		unlink(store.file.path);
		store.header = NULL;
	}
	return result;
}

void store_detach_from_file(void)
{
	store.header = NULL;
	store.id_nonce_bits = 0; /* no id is ours any more */
}

/* ---- own thread: room ---- */

static void move_retired_chunks_to_reuse_queue(void)
{
	uint32_t chunk;

	while ((chunk = pop_chunk_from_stack(&store.retired)) != STORE_CHUNK_INDEX_NONE) {
		store.retired_order[(store.retired_order_head + store.retired_order_count) %
				    store.chunk_count_limit] = chunk;
		store.retired_order_count++;
	}
}

static void count_overwritten_records(uint32_t chunk)
{
	static const enum nccl_loss losses[NCCL_CHUNK_KINDS] = {
		[NCCL_CHUNK_COMMUNICATORS] = NCCL_LOSS_RING_COMMUNICATORS,
		[NCCL_CHUNK_OPERATIONS] = NCCL_LOSS_RING_OPERATIONS,
		[NCCL_CHUNK_EVENTS] = NCCL_LOSS_RING_EVENTS,
	};
	unsigned kind = store.chunk_tracking[chunk].kind;
	uint32_t count = 0;

	for (uint32_t i = 0; i < store_get_used_record_count_of_chunk(chunk, kind); i++)
		count += RELAXED_LOAD(*(uint64_t *)store_get_record_address(chunk, kind, i)) != 0;
	RELAXED_ADD(store.header->losses[losses[kind]], count);
}

/* Ids in it are dead from here on. The words are stored one by one, atomically: a callback may be
 * looking at an old id just now. */
static void clear_chunk_and_make_ready(uint32_t chunk)
{
	struct nccl_chunk_header *header = store_get_chunk_header(chunk);
	uint64_t *words = (uint64_t *)(void *)(header + 1);
	uint32_t generation = RELAXED_LOAD(header->generation) + 1;

	RELAXED_STORE(*store_get_chunk_taken_count_word(chunk),
		      (uint64_t)NCCL_CHUNK_SIZE << 32 | generation);
	RELAXED_STORE(header->kind, NCCL_CHUNK_FREE);
	for (unsigned i = 0; i < (NCCL_CHUNK_SIZE - NCCL_CHUNK_HEADER_SIZE) / 8; i++)
		RELAXED_STORE(words[i], 0);
	store.chunk_tracking[chunk].settled_record_count = 0;
	store.chunk_tracking[chunk].counted = 0;
	store.chunk_tracking[chunk].open = 0;
	atomic_store_explicit(&store.chunk_tracking[chunk].was_cleared, true, memory_order_relaxed);
	RELAXED_STORE(header->is_quiet, 0);
	RELAXED_STORE(header->changed, 0);
	atomic_store_explicit(&store.chunk_tracking[chunk].state, STORE_CHUNK_READY,
			      memory_order_release);
	push_chunk_on_stack(&store.ready, chunk);
}

/* Uses the chunk that was retired first and has nothing in flight. */
static bool reuse_oldest_chunk(void)
{
	for (uint32_t tries = store.retired_order_count; tries; tries--) {
		uint32_t chunk = store.retired_order[store.retired_order_head];

		store.retired_order_head = (store.retired_order_head + 1) % store.chunk_count_limit;
		if (atomic_load_explicit(&store.chunk_tracking[chunk].state,
					 memory_order_relaxed) == STORE_CHUNK_FINISHED) {
			store.retired_order_count--;
			count_overwritten_records(chunk);
			clear_chunk_and_make_ready(chunk);
			return true;
		}
		store.retired_order[(store.retired_order_head + store.retired_order_count - 1) %
				    store.chunk_count_limit] = chunk;
	}
	return false;
}

/* A quarter of what there is may be empty: where the disk is full, of what the file has come to. */
static uint32_t get_ready_chunk_target_limit(void)
{
	uint32_t chunks =
		store.cannot_grow ? atomic_load(&store.chunk_count) : store.chunk_count_limit;
	uint32_t largest = chunks / 4 > CHUNKS_ADDED_IN_CALLBACK_COUNT
				   ? chunks / 4
				   : CHUNKS_ADDED_IN_CALLBACK_COUNT;

	return largest < READY_CHUNK_TARGET_COUNT_MAX ? largest : READY_CHUNK_TARGET_COUNT_MAX;
}

static void report_cannot_grow(int result)
{
	bool at_limit = atomic_load(&store.chunk_count) == store.chunk_count_limit;
	bool told = RELAXED_LOAD(store.header->losses[NCCL_LOSS_DISK_FULL]) != 0;

	RELAXED_STORE(store.cannot_grow, true);
	store_count_loss(at_limit ? NCCL_LOSS_LIMIT : NCCL_LOSS_DISK_FULL);
	if (!told && (!at_limit || !store.is_ring))
		helper_report_store_cannot_grow(result);
	/* At the limit it has its size, however small, because somebody wanted that. */
	if (!at_limit && store.ready_chunk_target_count > get_ready_chunk_target_limit())
		RELAXED_STORE(store.ready_chunk_target_count, get_ready_chunk_target_limit());
}

/* `may_grow`: a file system that is full is asked once a round, which takes long. */
static bool grow_or_reuse_chunk(bool may_grow)
{
	bool at_limit = atomic_load(&store.chunk_count) == store.chunk_count_limit;
	int result = at_limit || !may_grow ? -EDQUOT : grow_store(store.ready_chunk_target_count);

	if (!result) {
		RELAXED_STORE(store.cannot_grow, false);
		return true;
	}
	if (!store.cannot_grow)
		report_cannot_grow(result);
	return store.is_ring && reuse_oldest_chunk();
}

/* Not under the own thread's lock, which it holds for whole rounds. */
static bool grow_store_in_callback(void)
{
	if (pthread_mutex_trylock(&store_growth_lock))
		return false;
	if (!atomic_load_explicit(&store.ready.count, memory_order_relaxed) &&
	    !RELAXED_LOAD(store.cannot_grow) &&
	    atomic_load(&store.chunk_count) < store.chunk_count_limit)
		(void)grow_store_with_lock_held(CHUNKS_ADDED_IN_CALLBACK_COUNT);
	pthread_mutex_unlock(&store_growth_lock);
	return true;
}

bool store_is_short_of_chunks(void)
{
	return store.is_ring && store.cannot_grow &&
	       atomic_load_explicit(&store.ready.count, memory_order_relaxed) <
		       store.ready_chunk_target_count / 2;
}

void store_refill_ready_chunks(void)
{
	bool may_grow = true;

	if (atomic_exchange_explicit(&store.was_starved_of_chunks, 0, memory_order_relaxed) &&
	    store.ready_chunk_target_count < get_ready_chunk_target_limit())
		RELAXED_STORE(store.ready_chunk_target_count,
			      store.ready_chunk_target_count * 2 < get_ready_chunk_target_limit()
				      ? store.ready_chunk_target_count * 2
				      : get_ready_chunk_target_limit());
	move_retired_chunks_to_reuse_queue();
	while (atomic_load_explicit(&store.ready.count, memory_order_relaxed) <
	       store.ready_chunk_target_count) {
		if (!grow_or_reuse_chunk(may_grow))
			break;
		may_grow = !store.cannot_grow;
	}
	RELAXED_STORE(store.header->chunks_taken, atomic_load(&store.sequence));
}
