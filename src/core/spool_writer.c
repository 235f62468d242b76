/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See spool_writer.h. Growth: blocks are reserved with fallocate and touched before a chunk is
 * handed out, so that a full disk shows as an error here (counted drops) and never as SIGBUS in a
 * writer (mmap(2), fallocate(2)).
 */
#include "core/spool_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/text.h"

#define SEGMENTS_MAX  65536u
#define CHUNKS_MAX    (1u << 20)
#define SEGMENT_FIRST (4 * SPOOL_CHUNK_SMALL)
#define SEGMENT_SMALL (32 * SPOOL_CHUNK_SMALL)
#define SEGMENT_LARGE (16 * SPOOL_CHUNK_LARGE)
#define CHUNK_FULL    2
#define CHUNK_IN_USE  1
#define CHUNK_KEPT    3
#define LIMIT_REACHED E2BIG /* stands for our own limit among errnos that the file system gives */
#define LOW_FIRST     8u
#define LOW_MOST      256u
#define TURN          256u /* chunks taken back before somebody else's turn */

static void stack_push(struct spool_writer *spool, struct spool_stack *stack, uint32_t index)
{
	uint64_t head = atomic_load_explicit(&stack->head, memory_order_relaxed), fresh;

	do {
		atomic_store_explicit(&spool->chunks[index].next, (uint32_t)head,
				      memory_order_relaxed);
		fresh = (head & ~(uint64_t)UINT32_MAX) | (index + 1);
		/* release: the chunk's contents are visible to whoever pops it */
	} while (!atomic_compare_exchange_weak_explicit(
		&stack->head, &head, fresh, memory_order_release, memory_order_relaxed));
	atomic_fetch_add_explicit(&stack->count, 1, memory_order_relaxed);
}

static struct spool_chunk *stack_pop(struct spool_writer *spool, struct spool_stack *stack)
{
	/* acquire: pairs with the release of the push */
	uint64_t head = atomic_load_explicit(&stack->head, memory_order_acquire), fresh;
	uint32_t index;

	do {
		index = (uint32_t)head;
		if (!index)
			return NULL;
		fresh = ((head >> 32) + 1) << 32 |
			atomic_load_explicit(&spool->chunks[index - 1].next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&stack->head, &head, fresh, memory_order_acquire, memory_order_acquire));
	atomic_fetch_sub_explicit(&stack->count, 1, memory_order_relaxed);
	return &spool->chunks[index - 1];
}

static uint32_t chunk_index(const struct spool_writer *spool, const struct spool_chunk *chunk)
{
	return (uint32_t)(chunk - spool->chunks);
}

/* Extends the file with real blocks; file systems without fallocate get zeros written. */
static int reserve(int fd, uint64_t offset, uint64_t size)
{
	static const uint8_t zeros[4096];
	long result;

	if (!sys_file_size_allowed(offset + size))
		return -EFBIG;
	result = sys_call4(SYS_fallocate, fd, 0, (long)offset, (long)size);
	if (result != -EOPNOTSUPP && result != -ENOSYS)
		return (int)result;
	for (uint64_t done = 0; done < size; done += sizeof(zeros)) {
		result = sys_pwrite(fd, zeros, sizeof(zeros), offset + done);
		if (result != (long)sizeof(zeros))
			return result < 0 ? (int)result : -ENOSPC;
	}
	return 0;
}

/* Room at the end of the file, within our own limit. 0 or negative errno. */
static int extend(struct spool_writer *spool, int file, uint64_t size)
{
	int error;

	if (spool->limit && spool->file_size + size > spool->limit)
		return -LIMIT_REACHED;
	error = reserve(file, spool->file_size, size);
	if (error)
		return error;
	spool->file_size += size;
	spool->header->file_size = spool->file_size;
	return 0;
}

static void *map_shared(int fd, uint64_t offset, size_t size)
{
	void *address = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (sys_failed(address))
		return NULL;
#ifdef MADV_POPULATE_WRITE
	if (!sys_madvise(address, size, MADV_POPULATE_WRITE))
		return address;
#endif
	for (size_t i = 0; i < size; i += 4096)
		*(volatile uint8_t *)((uint8_t *)address + i) = 0;
	return address;
}

static int open_file(struct spool_writer *spool, const struct options *options, uint32_t *ret_image)
{
	long fd = -ENOENT;

	for (uint32_t image = 0; image < 1u << 20; image++) {
		*ret_image = image;
		struct text text = text_on(spool->path, sizeof(spool->path));
		text_string(&text, options->spool_directory);
		text_string(&text, "/");
		text_unsigned(&text, (uint64_t)sys_getpid());
		text_string(&text, "-");
		text_unsigned(&text, image);
		text_string(&text, ".spool");
		fd = sys_open(spool->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd != -EEXIST)
			return (int)fd;
	}
	return (int)fd;
}

static int grow(struct spool_writer *spool, int file, enum spool_chunk_class chunk_class,
		uint32_t size)
{
	uint32_t chunk_size = chunk_class == SPOOL_LARGE ? SPOOL_CHUNK_LARGE : SPOOL_CHUNK_SMALL;
	struct spool_segment *segment = &spool->segments[spool->segment_count];
	uint32_t count = size / chunk_size;
	uint64_t offset = spool->file_size;
	int error;

	if (spool->segment_count == SEGMENTS_MAX || spool->chunk_count + count > CHUNKS_MAX)
		return -ENOSPC;
	error = extend(spool, file, size);
	if (error)
		return error;
	segment->address = map_shared(file, offset, size);
	if (!segment->address)
		return -ENOMEM;
	if (chunk_class == SPOOL_LARGE)
		spool->move_at = spool->move_end;
	segment->size = size;
	segment->chunks = count;
	segment->retired = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct spool_chunk *chunk = &spool->chunks[spool->chunk_count];
		chunk->header =
			(struct spool_chunk_header *)(segment->address + (size_t)i * chunk_size);
		chunk->header->size = chunk_size;
		chunk->header->magic = SPOOL_CHUNK_MAGIC;
		chunk->size = chunk_size;
		chunk->segment = spool->segment_count;
		stack_push(spool, &spool->ready[chunk_class], spool->chunk_count++);
	}
	spool->segment_count++;
	return 0;
}

int spool_open(struct spool_writer *spool, const struct options *options)
{
	uint32_t image = 0;
	int error, fd = open_file(spool, options, &image);
	struct spool_file_header *header;

	if (fd < 0)
		return fd;
	spool->fd = fd;
	spool->limit = options->spool_limit;
	spool->ring = options->ring && options->spool_limit;
	spool->low_water[SPOOL_SMALL] = 2; /* grows with demand */
	spool->low_water[SPOOL_LARGE] = 0;
	error = reserve(fd, 0, SPOOL_ALIGNMENT);
	header = error ? NULL : map_shared(fd, 0, SPOOL_ALIGNMENT);
	spool->chunks = sys_mmap(NULL, CHUNKS_MAX * sizeof(*spool->chunks), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	spool->segments =
		sys_mmap(NULL, SEGMENTS_MAX * sizeof(*spool->segments), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (spool->ring)
		spool->ring_order =
			sys_mmap(NULL, CHUNKS_MAX * sizeof(uint32_t), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!header || sys_failed(spool->chunks) || sys_failed(spool->segments) ||
	    sys_failed(spool->ring_order)) {
		sys_close(fd);
		return error ? error : -ENOMEM;
	}
	spool->header = header;
	header->image = image;
	spool->file_size = SPOOL_ALIGNMENT;
	error = grow(spool, fd, SPOOL_SMALL, SEGMENT_FIRST);
	if (error)
		sys_close(fd);
	return error;
}

void spool_abandon(struct spool_writer *spool)
{
	if (spool->kept) {
		memset(spool, 0, sizeof(*spool));
		return;
	}
	for (uint32_t i = 0; i < spool->segment_count; i++) {
		if (spool->segments[i].address)
			sys_munmap(spool->segments[i].address, spool->segments[i].size);
	}
	if (spool->header)
		sys_munmap(spool->header, SPOOL_ALIGNMENT);
	if (spool->chunks)
		sys_munmap(spool->chunks, CHUNKS_MAX * sizeof(*spool->chunks));
	if (spool->segments)
		sys_munmap(spool->segments, SEGMENTS_MAX * sizeof(*spool->segments));
	if (spool->ring_order)
		sys_munmap(spool->ring_order, CHUNKS_MAX * sizeof(uint32_t));
	memset(spool, 0, sizeof(*spool));
}

static void replace(void *address, size_t size)
{
	sys_mmap(address, size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void spool_let_go(struct spool_writer *spool, bool kept)
{
	spool->kept = kept;
	/* An allocator may wait for the disk still; afterwards none begins. */
	while (atomic_exchange_explicit(&spool->refill_lock, 1, memory_order_acquire))
		sys_call0(SYS_sched_yield);
	for (int i = 0; i < SPOOL_CLASSES; i++)
		spool->ready[i].head = 0;
	spool->partial.head = spool->retired.head = 0;
	for (uint32_t i = 0; i < spool->segment_count; i++) {
		if (spool->segments[i].address)
			replace(spool->segments[i].address, spool->segments[i].size);
	}
	replace(spool->header, SPOOL_ALIGNMENT);
}

/* What is in the chunk is given up; seen by readers before any of it changes. */
static void forget_contents(struct spool_chunk *chunk)
{
	atomic_store_explicit((_Atomic uint32_t *)&chunk->header->committed, 0,
			      memory_order_relaxed);
	chunk->header->sequence = 0;
	chunk->header->state = 0;
	atomic_thread_fence(memory_order_release);
}

/* Ring mode at the limit: the oldest full chunk becomes ready again, its contents are given up and
 * counted. */
static bool recycle_oldest(struct spool_writer *spool)
{
	struct spool_chunk *chunk;

	if (spool->ring_head == spool->ring_tail)
		return false;
	chunk = &spool->chunks[spool->ring_order[spool->ring_tail++ % CHUNKS_MAX]];
	forget_contents(chunk);
	spool_count_loss(spool, SPOOL_LOSS_RING_OVERWRITE);
	stack_push(spool,
		   &spool->ready[chunk->size == SPOOL_CHUNK_LARGE ? SPOOL_LARGE : SPOOL_SMALL],
		   chunk_index(spool, chunk));
	return true;
}

/* Makes up to `wanted` chunks of any class ready, but never more than a quarter of the ring. */
static bool recycle(struct spool_writer *spool, uint32_t wanted)
{
	if (wanted > spool->chunk_count / 4)
		wanted = spool->chunk_count / 4;
	while (atomic_load_explicit(&spool->ready[SPOOL_SMALL].count, memory_order_relaxed) +
		       atomic_load_explicit(&spool->ready[SPOOL_LARGE].count,
					    memory_order_relaxed) <
	       wanted) {
		if (!recycle_oldest(spool))
			return false;
	}
	return true;
}

/* Behind all that is mapped: chunks move towards the end of the file only, so that a reader, who
 * goes the same way, can miss none. At a multiple of their size, for the page cache's sake. */
static bool make_room_to_move(struct spool_writer *spool, int file, uint32_t size)
{
	uint64_t gap = -spool->file_size % SPOOL_CHUNK_LARGE;

	if (spool->move_end - spool->move_at >= size)
		return true;
	if (extend(spool, file, gap + SEGMENT_LARGE))
		return false;
	atomic_store_explicit(&spool->disk_error, 0, memory_order_relaxed);
	spool->move_end = spool->file_size;
	spool->move_at = spool->move_end - SEGMENT_LARGE;
	return true;
}

static bool write_all(int file, const void *bytes, size_t size, uint64_t offset)
{
	for (size_t done = 0; done < size;) {
		long written =
			sys_pwrite(file, (const uint8_t *)bytes + done, size - done, offset + done);

		if (written <= 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

/* Whoever reads meanwhile, or after the process was killed, finds the chunk in the first place, in
 * both, or in the second. */
static bool move_chunk(struct spool_writer *spool, int file, struct spool_chunk *chunk)
{
	if (!make_room_to_move(spool, file, chunk->size) ||
	    !write_all(file, chunk->header, chunk->size, spool->move_at))
		return false;
	spool->move_at += chunk->size;
	forget_contents(chunk);
	memset(spool_chunk_data(chunk), 0, spool_chunk_capacity(chunk));
	stack_push(spool, &spool->ready[SPOOL_LARGE], chunk_index(spool, chunk));
	return true;
}

/* More than will be wanted are left over where many threads end. */
static bool is_wanted_again(const struct spool_writer *spool, const struct spool_chunk *chunk)
{
	return chunk->size == SPOOL_CHUNK_LARGE &&
	       atomic_load_explicit(&spool->ready[SPOOL_LARGE].count, memory_order_relaxed) <
		       2 * spool->low_water[SPOOL_LARGE];
}

static bool take_back_retired(struct spool_writer *spool, int file)
{
	struct spool_chunk *chunk;
	uint32_t count = 0;

	for (; count < TURN && (chunk = stack_pop(spool, &spool->retired)); count++) {
		struct spool_segment *segment = &spool->segments[chunk->segment];

		if (spool->ring) {
			if (chunk->header->state == CHUNK_KEPT)
				continue;
			spool->ring_order[spool->ring_head++ % CHUNKS_MAX] =
				chunk_index(spool, chunk);
			continue;
		}
		if (is_wanted_again(spool, chunk) && move_chunk(spool, file, chunk))
			continue;
		if (++segment->retired == segment->chunks) {
			sys_munmap(segment->address, segment->size);
			segment->address = NULL;
		}
	}
	return count != 0;
}

/* Demand shows what level is right: where little was left by the time that somebody came to look.
 */
static void raise_levels(struct spool_writer *spool)
{
	uint32_t wanted = atomic_exchange_explicit(&spool->wanted, 0, memory_order_relaxed);

	for (int i = 0; i < SPOOL_CLASSES; i++) {
		uint32_t low = spool->low_water[i],
			 left = atomic_load_explicit(&spool->ready[i].count, memory_order_relaxed);

		if (!(wanted & (1u << i)))
			continue;
		if (low < LOW_FIRST)
			spool->low_water[i] = LOW_FIRST;
		else if (low < LOW_MOST && left <= low / 4)
			spool->low_water[i] = low * 2;
	}
}

static bool refill(struct spool_writer *spool, int file)
{
	bool any;

	raise_levels(spool);
	any = take_back_retired(spool, file);
	for (int i = 0; i < SPOOL_CLASSES; i++) {
		/* Full large chunks come back: fewer are made than are wanted to be there. */
		uint32_t low = i == SPOOL_LARGE && !spool->ring ? spool->low_water[i] / 2
								: spool->low_water[i];

		while (atomic_load_explicit(&spool->ready[i].count, memory_order_relaxed) < low) {
			int error = grow(spool, file, (enum spool_chunk_class)i,
					 i == SPOOL_LARGE ? SEGMENT_LARGE : SEGMENT_SMALL);
			if (error && spool->ring && recycle(spool, low))
				break;
			atomic_store_explicit(&spool->disk_error, (uint32_t)-error,
					      memory_order_relaxed);
			if (error)
				return any;
			any = true;
		}
	}
	return any;
}

bool spool_refill(struct spool_writer *spool, int fd)
{
	bool any;

	if (atomic_exchange_explicit(&spool->refill_lock, 1, memory_order_acquire))
		return false; /* another allocator is at it */
	any = refill(spool, fd);
	atomic_store_explicit(&spool->refill_lock, 0, memory_order_release);
	return any;
}

int spool_reopen(const struct spool_writer *spool)
{
	return (int)sys_open(spool->path, O_RDWR | O_CLOEXEC, 0);
}

struct spool_chunk *spool_chunk_take(struct spool_writer *spool, enum spool_chunk_class chunk_class)
{
	struct spool_chunk *chunk = stack_pop(spool, &spool->ready[chunk_class]);

	if (atomic_load_explicit(&spool->ready[chunk_class].count, memory_order_relaxed) <=
	    spool->low_water[chunk_class] / 2)
		atomic_fetch_or_explicit(&spool->wanted, 1u << chunk_class, memory_order_relaxed);
	if (!chunk)
		chunk = stack_pop(
			spool,
			&spool->ready[chunk_class == SPOOL_SMALL ? SPOOL_LARGE : SPOOL_SMALL]);
	if (!chunk)
		return NULL;
	chunk->header->sequence =
		atomic_fetch_add_explicit(&spool->next_sequence, 1, memory_order_relaxed) + 1;
	chunk->header->state = CHUNK_IN_USE;
	return chunk;
}

struct spool_chunk *spool_chunk_take_partial(struct spool_writer *spool)
{
	return stack_pop(spool, &spool->partial);
}

/* Else it is of a file that was let go while its thread was in the midst of writing. */
static bool is_own_chunk(const struct spool_writer *spool, const struct spool_chunk *chunk)
{
	return (uintptr_t)chunk - (uintptr_t)spool->chunks < CHUNKS_MAX * sizeof(*chunk);
}

void spool_chunk_retire(struct spool_writer *spool, struct spool_chunk *chunk)
{
	if (!is_own_chunk(spool, chunk))
		return;
	if (chunk->header->state != CHUNK_KEPT)
		chunk->header->state = CHUNK_FULL;
	stack_push(spool, &spool->retired, chunk_index(spool, chunk));
}

void spool_chunk_keep(struct spool_chunk *chunk)
{
	chunk->header->state = CHUNK_KEPT;
}

void spool_chunk_give_back(struct spool_writer *spool, struct spool_chunk *chunk)
{
	if (!is_own_chunk(spool, chunk))
		return;
	if (spool_chunk_capacity(chunk) - chunk->header->committed >= SPOOL_PARTIAL_WORTH)
		stack_push(spool, &spool->partial, chunk_index(spool, chunk));
	else
		spool_chunk_retire(spool, chunk);
}

void spool_count_loss(struct spool_writer *spool, enum spool_loss loss)
{
	if (spool->header)
		atomic_fetch_add_explicit((_Atomic uint64_t *)&spool->header->losses[loss], 1,
					  memory_order_relaxed);
}

void spool_count_no_chunk(struct spool_writer *spool)
{
	uint32_t error = atomic_load_explicit(&spool->disk_error, memory_order_relaxed);

	spool_count_loss(spool, error == LIMIT_REACHED ? SPOOL_LOSS_MEMORY_LIMIT
				: error                ? SPOOL_LOSS_DISK_FULL
						       : SPOOL_LOSS_NO_CHUNK);
}
