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

#define GROWTH     128u /* chunks: 2 MiB */
#define TARGET     128u /* chunks kept ready */
#define HELP       32u  /* chunks that a callback makes where there are none */
#define TARGET_MAX 2048u

struct store store;

/* ---- stacks of chunks ---- */

static void push(struct store_stack *stack, uint32_t chunk)
{
	uint64_t head = atomic_load_explicit(&stack->head, memory_order_relaxed);

	do {
		atomic_store_explicit(&store.chunks[chunk].next, (uint32_t)head,
				      memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&stack->head, &head, (head & ~0xffffffffull) | (chunk + 1), memory_order_release,
		memory_order_relaxed));
	atomic_fetch_add_explicit(&stack->count, 1, memory_order_relaxed);
}

static uint32_t pop(struct store_stack *stack)
{
	uint64_t head = atomic_load_explicit(&stack->head, memory_order_acquire), next;

	do {
		if (!(uint32_t)head)
			return STORE_NONE;
		next = atomic_load_explicit(&store.chunks[(uint32_t)head - 1].next,
					    memory_order_relaxed);
		next |= ((head >> 32) + 1) << 32;
	} while (!atomic_compare_exchange_weak_explicit(
		&stack->head, &head, next, memory_order_acquire, memory_order_acquire));
	atomic_fetch_sub_explicit(&stack->count, 1, memory_order_relaxed);
	return (uint32_t)head - 1;
}

/* ---- callbacks ---- */

static bool help(void);

/* Makes a ready chunk one of `kind`; returns the word that names it, or 0. */
static uint64_t begin_chunk(unsigned kind, uint32_t communicator)
{
	uint32_t chunk = pop(&store.ready), generation;
	struct nccl_chunk_header *header;

	/* The own thread did not come to it, because it has no processor, say. */
	if (chunk == STORE_NONE && help())
		chunk = pop(&store.ready);

	if (atomic_load_explicit(&store.ready.count, memory_order_relaxed) <
	    GET(store.ready_target) / 2)
		helper_wake();
	if (chunk == STORE_NONE) {
		atomic_store_explicit(&store.starved, 1, memory_order_relaxed);
		return 0;
	}
	header = store_chunk(chunk);
	SET(header->record_size, store_record_size(kind));
	SET(header->communicator, communicator);
	SET(header->sequence,
	    atomic_fetch_add_explicit(&store.sequence, 1, memory_order_relaxed) + 1);
	SET(header->kind, kind);
	store.chunks[chunk].kind = (uint8_t)kind;
	generation = GET(header->generation);
	__atomic_store_n(store_word(chunk), generation, __ATOMIC_RELEASE);
	atomic_store_explicit(&store.chunks[chunk].state, STORE_CURRENT, memory_order_release);
	return (uint64_t)(chunk + 1) << 32 | generation;
}

void store_retire(uint32_t chunk)
{
	atomic_store_explicit(&store.chunks[chunk].state, STORE_RETIRED, memory_order_release);
	push(&store.retired, chunk);
}

/* The chunk is full, or there is none: another one, which other threads may have brought already.
 */
static uint64_t next_chunk(_Atomic uint64_t *current, uint64_t old, unsigned kind,
			   uint32_t communicator)
{
	uint64_t fresh = begin_chunk(kind, communicator), seen = old;

	if (!fresh)
		return 0;
	/* Should the old one be somebody else's by now, this does not become the next one. */
	SET(store_chunk((uint32_t)(fresh >> 32) - 1)->first,
	    old ? GET(store_chunk((uint32_t)(old >> 32) - 1)->first) + store_capacity(kind) : 0);
	if (atomic_compare_exchange_strong_explicit(current, &seen, fresh, memory_order_acq_rel,
						    memory_order_acquire)) {
		if (old)
			store_retire((uint32_t)(old >> 32) - 1);
		return fresh;
	}
	/* Not needed: it is empty, and goes the way of full ones. */
	store_retire((uint32_t)(fresh >> 32) - 1);
	return seen;
}

struct store_place store_take_next(_Atomic uint64_t *current, unsigned kind, uint32_t communicator)
{
	uint64_t word = atomic_load_explicit(current, memory_order_acquire), taken;
	struct store_place place = {0, NULL, 0};

	for (int tries = 0; tries < 8; tries++) {
		uint32_t chunk = (uint32_t)(word >> 32) - 1;

		if (word) {
			taken = __atomic_fetch_add(store_word(chunk), 1ull << 32, __ATOMIC_ACQUIRE);
			if ((uint32_t)taken == (uint32_t)word &&
			    taken >> 32 < store_capacity(kind)) {
				place.record = store_record(chunk, kind, (uint32_t)(taken >> 32));
				place.id = store_id(place.record, (uint32_t)word);
				place.ordinal = GET(store_chunk(chunk)->first) + (taken >> 32);
				break;
			}
		}
		word = next_chunk(current, word, kind, communicator);
		if (!word)
			break;
	}
	return place;
}

/* ---- the file ---- */

static int reserve_blocks(int descriptor, uint64_t from, uint64_t size)
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

/* MAP_POPULATE would map pages of a shared file for reading only, and the first write to each would
 * still be a fault, of microseconds, in a callback. */
static void touch(uint8_t *from, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += 4096)
		__atomic_store_n(from + at, 0, __ATOMIC_RELAXED);
}

/* A limit on the size of files is told by a signal, which kills. */
static int reserve_quietly(int descriptor, uint64_t from, uint64_t size)
{
	struct timespec none = {0, 0};
	sigset_t file_size, before;
	int result;

	sigemptyset(&file_size);
	sigaddset(&file_size, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &file_size, &before);
	result = reserve_blocks(descriptor, from, size);
	if (result == -EFBIG && !sigismember(&before, SIGXFSZ))
		sigtimedwait(&file_size, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

/* Maps `size` bytes of the file behind what is mapped. */
static int map_part(int descriptor, uint64_t size)
{
	uint64_t from = atomic_load_explicit(&store.mapped, memory_order_relaxed);
	int result = reserve_quietly(descriptor, from, size);

	if (result)
		return result;
	if (mmap(store.base + from, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 descriptor, (off_t)from) == MAP_FAILED)
		return -errno;
	touch(store.base + from, size);
	atomic_store_explicit(&store.mapped, from + size, memory_order_release);
	return 0;
}

/* The file is opened each time: programs close descriptors that are not theirs. */
static int grow_locked(uint32_t chunks)
{
	uint32_t first = atomic_load_explicit(&store.chunk_count, memory_order_relaxed);
	int descriptor, result;

	if (chunks > store.chunk_limit - first)
		chunks = store.chunk_limit - first;
	if (!chunks)
		return -EDQUOT;
	descriptor = open(store.path, O_RDWR | O_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	result = map_part(descriptor, (uint64_t)chunks * NCCL_CHUNK_SIZE);
	close(descriptor);
	if (result)
		return result;
	for (uint32_t i = first; i < first + chunks; i++) {
		struct nccl_chunk_header *header = store_chunk(i);

		SET(header->magic, NCCL_CHUNK_MAGIC);
		SET(header->generation, 1);
		atomic_store_explicit(&store.chunks[i].state, STORE_READY, memory_order_relaxed);
	}
	atomic_store_explicit(&store.chunk_count, first + chunks, memory_order_release);
	__atomic_store_n(&store.header->file_size, atomic_load(&store.mapped), __ATOMIC_RELEASE);
	for (uint32_t i = first + chunks; i-- > first;)
		push(&store.ready, i);
	return 0;
}

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;

static int grow(uint32_t chunks)
{
	int result;

	pthread_mutex_lock(&growing);
	result = grow_locked(chunks);
	pthread_mutex_unlock(&growing);
	return result;
}

static int create_file(const char *directory)
{
	int descriptor = -1;

	for (unsigned number = 0; number < 10000 && descriptor < 0; number++) {
		if (snprintf(store.path, sizeof(store.path), "%s/nccl-%ld-%u.nccl", directory,
			     (long)getpid(), number) >= (int)sizeof(store.path))
			return -ENAMETOOLONG;
		descriptor = open(store.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (descriptor < 0 && errno != EEXIST)
			return -errno;
		store.number = number;
	}
	return descriptor < 0 ? -EEXIST : descriptor;
}

static uint64_t make_nonce(void)
{
	uint16_t nonce;

	if (getrandom(&nonce, sizeof(nonce), GRND_NONBLOCK) != sizeof(nonce))
		nonce = (uint16_t)(clock_ns(CLOCK_MONOTONIC) / 1000 * 40503 ^ (uint64_t)getpid());
	return (uint64_t)NCCL_ID_MAGIC << 60 | (uint64_t)(nonce & 0xfff) << 48;
}

static void *reserve(uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* Everything that is known only while the file is new; base and chunk_limit are set. */
static int begin_file(int descriptor)
{
	int result = map_part(descriptor, NCCL_CHUNKS_OFFSET);

	if (result)
		return result;
	store.header = (struct nccl_file_header *)store.base;
	store.header->file_number = store.number;
	store.header->nonce = (uint32_t)(store.nonce >> 48 & 0xfff);
	return grow(GROWTH);
}

int store_open(const char *directory, uint64_t limit, bool ring)
{
	uint64_t least = NCCL_CHUNKS_OFFSET + STORE_SIZE_LEAST;
	int descriptor = create_file(directory), result;

	if (descriptor < 0)
		return descriptor;
	limit = limit < least ? least : limit > STORE_SIZE_LARGEST ? STORE_SIZE_LARGEST : limit;
	store.ring = ring;
	store.ready_target = TARGET;
	store.chunk_limit = (uint32_t)((limit - NCCL_CHUNKS_OFFSET) / NCCL_CHUNK_SIZE);
	store.nonce = make_nonce();
	store.chunks = reserve(store.chunk_limit * sizeof(*store.chunks));
	store.order = reserve(store.chunk_limit * sizeof(*store.order));
	store.base =
		mmap(NULL, limit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!store.chunks || !store.order || store.base == MAP_FAILED)
		result = -ENOMEM;
	else
		result = begin_file(descriptor);
	close(descriptor);
	if (result) {
		unlink(store.path);
		store.header = NULL;
	}
	return result;
}

void store_leave(void)
{
	store.header = NULL;
	store.nonce = 0; /* no id is ours any more */
}

/* ---- own thread: room ---- */

static void take_back(void)
{
	uint32_t chunk;

	while ((chunk = pop(&store.retired)) != STORE_NONE) {
		store.order[(store.order_head + store.order_count) % store.chunk_limit] = chunk;
		store.order_count++;
	}
}

static void count_overwritten(uint32_t chunk)
{
	unsigned kind = store.chunks[chunk].kind;
	uint32_t count = 0;

	for (uint32_t i = 0; i < store_taken(chunk, kind); i++)
		count += GET(*(uint64_t *)store_record(chunk, kind, i)) != 0;
	ADD(store.header->losses[kind == NCCL_CHUNK_OPERATIONS ? NCCL_LOSS_RING_OPERATIONS
							       : NCCL_LOSS_RING_EVENTS],
	    count);
}

/* Ids in it are dead from here on. The words are stored one by one, atomically: a callback may be
 * looking at an old id just now. */
static void clear(uint32_t chunk)
{
	struct nccl_chunk_header *header = store_chunk(chunk);
	uint64_t *words = (uint64_t *)(void *)(header + 1);
	uint32_t generation = GET(header->generation) + 1;

	SET(*store_word(chunk), (uint64_t)NCCL_CHUNK_SIZE << 32 | generation);
	SET(header->kind, NCCL_CHUNK_FREE);
	for (unsigned i = 0; i < (NCCL_CHUNK_SIZE - NCCL_CHUNK_HEADER_SIZE) / 8; i++)
		SET(words[i], 0);
	store.chunks[chunk].looked_at = 0;
	store.chunks[chunk].counted = 0;
	store.chunks[chunk].open = 0;
	atomic_store_explicit(&store.chunks[chunk].state, STORE_READY, memory_order_release);
	push(&store.ready, chunk);
}

/* Uses the chunk that was retired first and has nothing in flight. */
static bool reuse_oldest(void)
{
	for (uint32_t tries = store.order_count; tries; tries--) {
		uint32_t chunk = store.order[store.order_head];

		store.order_head = (store.order_head + 1) % store.chunk_limit;
		if (atomic_load_explicit(&store.chunks[chunk].state, memory_order_relaxed) ==
		    STORE_FINISHED) {
			store.order_count--;
			count_overwritten(chunk);
			clear(chunk);
			return true;
		}
		store.order[(store.order_head + store.order_count - 1) % store.chunk_limit] = chunk;
	}
	return false;
}

/* A quarter of what there is may be empty: where the disk is full, of what the file has come to. */
static uint32_t target_largest(void)
{
	uint32_t chunks = store.cannot_grow ? atomic_load(&store.chunk_count) : store.chunk_limit;
	uint32_t largest = chunks / 4 > HELP ? chunks / 4 : HELP;

	return largest < TARGET_MAX ? largest : TARGET_MAX;
}

static void cannot_grow(int result)
{
	bool at_limit = atomic_load(&store.chunk_count) == store.chunk_limit;
	bool told = GET(store.header->losses[NCCL_LOSS_DISK_FULL]) != 0;

	SET(store.cannot_grow, true);
	store_count(at_limit ? NCCL_LOSS_LIMIT : NCCL_LOSS_DISK_FULL);
	if (!told && (!at_limit || !store.ring))
		helper_no_room(result);
	/* At the limit it has its size, however small, because somebody wanted that. */
	if (!at_limit && store.ready_target > target_largest())
		SET(store.ready_target, target_largest());
}

/* `may_grow`: a file system that is full is asked once a round, which takes long. */
static bool more_room(bool may_grow)
{
	bool at_limit = atomic_load(&store.chunk_count) == store.chunk_limit;
	int result = at_limit || !may_grow ? -EDQUOT : grow(store.ready_target);

	if (!result) {
		SET(store.cannot_grow, false);
		return true;
	}
	if (!store.cannot_grow)
		cannot_grow(result);
	return store.ring && reuse_oldest();
}

/* Not under the own thread's lock, which it holds for whole rounds. */
static bool help(void)
{
	if (pthread_mutex_trylock(&growing))
		return false;
	if (!atomic_load_explicit(&store.ready.count, memory_order_relaxed) &&
	    !GET(store.cannot_grow) && atomic_load(&store.chunk_count) < store.chunk_limit)
		(void)grow_locked(HELP);
	pthread_mutex_unlock(&growing);
	return true;
}

void store_refill(void)
{
	bool may_grow = true;

	if (atomic_exchange_explicit(&store.starved, 0, memory_order_relaxed) &&
	    store.ready_target < target_largest())
		SET(store.ready_target, store.ready_target * 2 < target_largest()
						? store.ready_target * 2
						: target_largest());
	take_back();
	while (atomic_load_explicit(&store.ready.count, memory_order_relaxed) <
	       store.ready_target) {
		if (!more_room(may_grow))
			break;
		may_grow = !store.cannot_grow;
	}
	SET(store.header->chunks_taken, atomic_load(&store.sequence));
}
