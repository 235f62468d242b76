/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See writer.h.
 */
#include "core/spool/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/base/text.h"
#include "core/spool/places.h"

#define SEGMENTS_MAX                  65536u
#define CHUNKS_MAX                    (1u << 20)
#define SEGMENT_FIRST_SIZE            (4 * SPOOL_CHUNK_SMALL_SIZE)
#define WANTED_READY_CHUNKS_FIRST     8u
#define WANTED_READY_CHUNKS_MAX       256u
#define READY_CHUNKS_RING_DIVISOR     4 /* at most one of so many bytes of a ring is ready */
#define KEPT_CHUNKS_RING_DIVISOR      4
#define RECLAIMED_CHUNKS_PER_TURN_MAX 256u /* chunks taken back before somebody else's turn */

static void push_chunk(struct spool_writer *spool, struct spool_chunk_stack *stack, uint32_t index)
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

static struct spool_chunk *pop_chunk(struct spool_writer *spool, struct spool_chunk_stack *stack)
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

static uint32_t get_chunk_index(const struct spool_writer *spool, const struct spool_chunk *chunk)
{
	return (uint32_t)(chunk - spool->chunks);
}

static void touch_pages(void *address, size_t size)
{
#ifdef MADV_POPULATE_WRITE
	if (!sys_madvise(address, size, MADV_POPULATE_WRITE))
		return;
#endif
	for (size_t i = 0; i < size; i += 4096)
		*(volatile uint8_t *)((uint8_t *)address + i) = 0;
}

/* Shared, so that a fork copies none of it; touched, so that a writer has no fault. */
static void *map_and_touch_shared_memory(size_t size)
{
	void *address = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_mmap_failed(address))
		return NULL;
	touch_pages(address, size);
	return address;
}

static int create_spool_file(struct spool_writer *spool, const struct options *options,
			     uint32_t pid, uint32_t *ret_image)
{
	long fd = -ENOENT;

	for (uint32_t image = 0; image < 1u << 20; image++) {
		*ret_image = image;
		struct text_buffer text = text_buffer_init(spool->path, sizeof(spool->path));
		text_append_string(&text, options->spool_directory);
		text_append_string(&text, "/");
		text_append_unsigned(&text, pid);
		text_append_string(&text, "-");
		text_append_unsigned(&text, image);
		text_append_string(&text, ".spool");
		fd = sys_open(spool->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd != -EEXIST)
			return (int)fd;
	}
	return (int)fd;
}

/* Empty, with another place in the file. */
static void reset_chunk_for_offset(struct spool_chunk *chunk, uint64_t offset)
{
	memset(chunk->header, 0, SPOOL_CHUNK_HEADER_SIZE);
	chunk->header->size = chunk->size;
	chunk->header->magic = SPOOL_CHUNK_MAGIC;
	chunk->offset = offset;
	chunk->written = 0;
	chunk->in_place = false;
}

/* Who reads the results waits for who writes them (F_OFD_GETLK). */
static void lock_spool_file(int fd)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	sys_call3(SYS_fcntl, fd, F_OFD_SETLK, (long)&whole);
}

/* ---- segments ---- */

/* One that was unmapped, for as many chunks; else a new one. NULL: there are too many. */
static struct spool_segment *take_segment_slot(struct spool_writer *spool, uint32_t chunk_count,
					       uint32_t size)
{
	struct spool_segment *segment;

	for (uint32_t *link = &spool->unmapped_segments; *link;
	     link = &spool->segments[*link - 1].next_unmapped) {
		segment = &spool->segments[*link - 1];
		if (segment->chunk_count != chunk_count || segment->size != size)
			continue;
		*link = segment->next_unmapped;
		return segment;
	}
	if (spool->segment_count == SEGMENTS_MAX || spool->chunk_count + chunk_count > CHUNKS_MAX)
		return NULL;
	segment = &spool->segments[spool->segment_count++];
	segment->first_chunk_index = spool->chunk_count;
	segment->chunk_count = chunk_count;
	segment->size = size;
	spool->chunk_count += chunk_count;
	return segment;
}

static void give_segment_slot_back(struct spool_writer *spool, struct spool_segment *segment)
{
	segment->next_unmapped = spool->unmapped_segments;
	spool->unmapped_segments = (uint32_t)(segment - spool->segments) + 1;
}

static void unmap_segment(struct spool_writer *spool, struct spool_segment *segment)
{
	sys_munmap(segment->address, segment->size);
	segment->address = NULL;
	give_segment_slot_back(spool, segment);
	while (spool->first_mapped_segment_index < spool->segment_count &&
	       !spool->segments[spool->first_mapped_segment_index].address)
		spool->first_mapped_segment_index++;
}

/* Of one chunk where it has to get an old place. */
static int add_spool_segment(struct spool_writer *spool, int file,
			     enum spool_chunk_class chunk_class, uint32_t size)
{
	uint32_t chunk_size = spool_chunk_sizes[chunk_class], index;
	bool in_old_place =
		!spool_places_have_room(spool, size) && spool_places_have_old(spool, chunk_class);
	struct spool_segment *segment;
	uint64_t offset = spool->file_size;
	int error = 0;

	if (in_old_place)
		size = chunk_size;
	segment = take_segment_slot(spool, size / chunk_size, size);
	if (!segment)
		return -ENOSPC;
	segment->address = map_and_touch_shared_memory(size);
	if (!segment->address)
		error = -ENOMEM;
	else if (in_old_place)
		offset = spool_places_take_oldest(spool, file, chunk_class);
	else
		error = spool_places_extend_file(spool, file, size);
	if (!error && !in_old_place)
		spool_places_give_up_reserved(spool, chunk_class);
	if (error) {
		if (segment->address)
			sys_munmap(segment->address, size);
		segment->address = NULL;
		give_segment_slot_back(spool, segment);
		return error;
	}
	segment->retired_chunk_count = 0;
	index = (uint32_t)(segment - spool->segments);
	if (index < spool->first_mapped_segment_index)
		spool->first_mapped_segment_index = index;
	for (uint32_t i = 0; i < segment->chunk_count; i++) {
		struct spool_chunk *chunk = &spool->chunks[segment->first_chunk_index + i];
		chunk->header =
			(struct spool_chunk_header *)(segment->address + (size_t)i * chunk_size);
		chunk->size = chunk_size;
		chunk->segment_index = index;
		reset_chunk_for_offset(chunk, offset + (uint64_t)i * chunk_size);
		push_chunk(spool, &spool->ready_chunks[chunk_class],
			   segment->first_chunk_index + i);
	}
	return 0;
}

/* What grows with the file: address space, of which the kernel gives what is touched. */
struct spool_tables {
	struct spool_chunk chunks[CHUNKS_MAX];
	struct spool_segment segments[SEGMENTS_MAX];
	uint64_t oldest_places[SPOOL_CHUNK_CLASS_COUNT][SPOOL_OLD_PLACES_MAX];
};

static bool reserve_tables(struct spool_writer *spool)
{
	struct spool_tables *tables = sys_mmap(NULL, sizeof(*tables), PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_mmap_failed(tables))
		return false;
	spool->tables = tables;
	spool->chunks = tables->chunks;
	spool->segments = tables->segments;
	for (int i = 0; i < SPOOL_CHUNK_CLASS_COUNT; i++)
		spool->reusable_places[i].offsets = tables->oldest_places[i];
	return true;
}

int spool_open(struct spool_writer *spool, const struct options *options, uint32_t pid)
{
	uint32_t image = 0;
	int error, fd = create_spool_file(spool, options, pid, &image);
	struct spool_file_header *header;

	if (fd < 0)
		return fd;
	spool->fd = fd;
	lock_spool_file(fd);
	spool->limit = options->spool_limit_bytes;
	spool->ring = options->ring && options->spool_limit_bytes;
	spool->ready_chunks_low_water[SPOOL_CHUNK_CLASS_SMALL] = 2; /* grows with demand */
	spool->ready_chunks_low_water[SPOOL_CHUNK_CLASS_LARGE] = 0;
	error = spool_places_reserve_blocks(fd, 0, SPOOL_ALIGNMENT);
	header = error ? NULL : map_and_touch_shared_memory(SPOOL_ALIGNMENT);
	spool->profiled_process_mark_page =
		sys_mmap(NULL, SPOOL_ALIGNMENT, PROT_NONE, MAP_SHARED, fd, 0);
	if (!header || !reserve_tables(spool)) {
		sys_close(fd);
		return error ? error : -ENOMEM;
	}
	spool->header = header;
	header->image = image;
	spool->file_size = SPOOL_ALIGNMENT;
	error = add_spool_segment(spool, fd, SPOOL_CHUNK_CLASS_SMALL, SEGMENT_FIRST_SIZE);
	if (error)
		sys_close(fd);
	return error;
}

struct spool_writer spool_writer_without_file;

/* All but who makes chunks. */
static void reset_spool_writer(struct spool_writer *spool)
{
	struct spool_chunk_maker_wakeup makers = spool->chunk_maker_wakeup;

	memset(spool, 0, sizeof(*spool));
	spool->chunk_maker_wakeup = makers;
}

void spool_unmap_old_run(struct spool_writer *spool)
{
	if (spool->profiled_process_mark_page &&
	    !sys_mmap_failed(spool->profiled_process_mark_page))
		sys_munmap(spool->profiled_process_mark_page, SPOOL_ALIGNMENT);
	if (spool->kept) {
		reset_spool_writer(spool);
		return;
	}
	for (uint32_t i = 0; i < spool->segment_count; i++) {
		if (spool->segments[i].address)
			sys_munmap(spool->segments[i].address, spool->segments[i].size);
	}
	if (spool->header)
		sys_munmap(spool->header, SPOOL_ALIGNMENT);
	if (spool->tables)
		sys_munmap(spool->tables, sizeof(*spool->tables));
	reset_spool_writer(spool);
}

void spool_detach_from_file(struct spool_writer *spool, bool kept)
{
	spool->kept = kept;
	/* An allocator may wait for the disk still; afterwards none begins. */
	while (!spool_try_refill_lock(spool))
		sys_call0(SYS_sched_yield);
	for (int i = 0; i < SPOOL_CHUNK_CLASS_COUNT; i++)
		spool->ready_chunks[i].head = 0;
	spool->partial_chunks.head = spool->retired_chunks.head = 0;
	for (uint32_t i = spool->first_mapped_segment_index; i < spool->segment_count; i++) {
		if (spool->segments[i].address)
			sys_madvise(spool->segments[i].address, spool->segments[i].size,
				    MADV_REMOVE);
	}
	sys_munmap(spool->profiled_process_mark_page, SPOOL_ALIGNMENT);
	spool->profiled_process_mark_page = NULL;
}

/* How many chunks are to be ready; in a ring that is small they leave room for what is kept. */
static uint32_t get_wanted_ready_chunk_count(const struct spool_writer *spool,
					     enum spool_chunk_class chunk_class)
{
	uint64_t most = spool->limit / READY_CHUNKS_RING_DIVISOR / spool_chunk_sizes[chunk_class];
	uint32_t level = spool->ready_chunks_low_water[chunk_class];

	return spool->ring && level > most ? (uint32_t)most : level;
}

/* ---- full chunks ---- */

/* All of it is in the file: its memory is used for what comes next. */
static bool reuse_chunk_at_other_place(struct spool_writer *spool, int file,
				       struct spool_chunk *chunk)
{
	enum spool_chunk_class chunk_class = spool_chunk_get_class(chunk);
	uint64_t offset;

	if (!spool_places_find_for_reused_chunk(spool, file, chunk_class, &offset))
		return false;
	atomic_store_explicit(&spool->growth_errno, 0, memory_order_relaxed);
	memset(chunk->header, 0, chunk->size);
	reset_chunk_for_offset(chunk, offset);
	push_chunk(spool, &spool->ready_chunks[chunk_class], get_chunk_index(spool, chunk));
	return true;
}

/* More than will be wanted are left over where many threads end. */
static bool chunk_is_wanted_again(const struct spool_writer *spool, const struct spool_chunk *chunk)
{
	enum spool_chunk_class chunk_class = spool_chunk_get_class(chunk);

	return atomic_load_explicit(&spool->ready_chunks[chunk_class].count, memory_order_relaxed) <
	       2 * get_wanted_ready_chunk_count(spool, chunk_class);
}

static bool write_and_reuse_retired_chunks(struct spool_writer *spool, int file)
{
	struct spool_chunk *chunk;
	uint32_t count = 0;

	for (; count < RECLAIMED_CHUNKS_PER_TURN_MAX &&
	       (chunk = pop_chunk(spool, &spool->retired_chunks));
	     count++) {
		struct spool_segment *segment = &spool->segments[chunk->segment_index];

		spool_write_chunk(spool, file, chunk, chunk->in_place);
		spool_places_note_full_chunk(spool, chunk);
		if (chunk_is_wanted_again(spool, chunk) &&
		    reuse_chunk_at_other_place(spool, file, chunk))
			continue;
		chunk->written = SPOOL_CHUNK_WRITTEN_WHOLE;
		if (++segment->retired_chunk_count == segment->chunk_count)
			unmap_segment(spool, segment);
		else
			sys_madvise(chunk->header, chunk->size, MADV_REMOVE);
	}
	return count != 0;
}

/* ---- demand ---- */

/* Demand shows what level is right: where little was left by the time that somebody came to look.
 */
static void raise_wanted_ready_chunk_counts(struct spool_writer *spool)
{
	uint32_t wanted = atomic_exchange_explicit(&spool->wanted, 0, memory_order_relaxed);

	for (int i = 0; i < SPOOL_CHUNK_CLASS_COUNT; i++) {
		uint32_t low = spool->ready_chunks_low_water[i],
			 left = atomic_load_explicit(&spool->ready_chunks[i].count,
						     memory_order_relaxed);

		if (!(wanted & (1u << i)))
			continue;
		if (low < WANTED_READY_CHUNKS_FIRST)
			spool->ready_chunks_low_water[i] = WANTED_READY_CHUNKS_FIRST;
		else if (low < WANTED_READY_CHUNKS_MAX && left <= low / 4)
			spool->ready_chunks_low_water[i] = low * 2;
	}
}

static bool refill_ready_chunks_under_lock(struct spool_writer *spool, int file)
{
	bool any;

	raise_wanted_ready_chunk_counts(spool);
	any = write_and_reuse_retired_chunks(spool, file);
	for (int i = 0; i < SPOOL_CHUNK_CLASS_COUNT; i++) {
		uint32_t low = get_wanted_ready_chunk_count(spool, (enum spool_chunk_class)i);

		/* Full large chunks come back: fewer are made than are wanted to be there. */
		if (i == SPOOL_CHUNK_CLASS_LARGE)
			low /= 2;
		while (atomic_load_explicit(&spool->ready_chunks[i].count, memory_order_relaxed) <
		       low) {
			int error = add_spool_segment(spool, file, (enum spool_chunk_class)i,
						      spool_segment_sizes[i]);

			/* In the ring there are places for small ones alone. */
			if (error == -SPOOL_LIMIT_ERRNO && i == SPOOL_CHUNK_CLASS_LARGE &&
			    spool_places_have_old(spool, SPOOL_CHUNK_CLASS_SMALL))
				break;
			atomic_store_explicit(&spool->growth_errno, (uint32_t)-error,
					      memory_order_relaxed);
			if (error)
				return any;
			any = true;
		}
	}
	return any;
}

bool spool_try_refill_lock(struct spool_writer *spool)
{
	uint32_t nobody = 0;

	return atomic_compare_exchange_strong_explicit(&spool->refill_lock, &nobody,
						       (uint32_t)sys_gettid(), memory_order_acquire,
						       memory_order_relaxed);
}

bool spool_refill_ready_chunks(struct spool_writer *spool, int fd)
{
	bool any;

	if (!spool_try_refill_lock(spool))
		return false; /* another allocator is at it */
	any = refill_ready_chunks_under_lock(spool, fd);
	atomic_store_explicit(&spool->refill_lock, 0, memory_order_release);
	return any;
}

int spool_reopen_file(const struct spool_writer *spool)
{
	return (int)sys_open(spool->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
}

struct spool_chunk *spool_chunk_take(struct spool_writer *spool, enum spool_chunk_class chunk_class)
{
	struct spool_chunk *chunk = pop_chunk(spool, &spool->ready_chunks[chunk_class]);

	if (atomic_load_explicit(&spool->ready_chunks[chunk_class].count, memory_order_relaxed) <=
	    spool->ready_chunks_low_water[chunk_class] / 2)
		atomic_fetch_or_explicit(&spool->wanted, 1u << chunk_class, memory_order_relaxed);
	if (!chunk)
		chunk = pop_chunk(spool, &spool->ready_chunks[chunk_class == SPOOL_CHUNK_CLASS_SMALL
								      ? SPOOL_CHUNK_CLASS_LARGE
								      : SPOOL_CHUNK_CLASS_SMALL]);
	if (!chunk)
		return NULL;
	chunk->header->sequence =
		atomic_fetch_add_explicit(&spool->last_chunk_sequence, 1, memory_order_relaxed) + 1;
	chunk->header->state = CHUNK_STATE_IN_USE;
	return chunk;
}

struct spool_chunk *spool_chunk_take_partial(struct spool_writer *spool)
{
	return pop_chunk(spool, &spool->partial_chunks);
}

/* Else it is of a file that was let go while its thread was in the midst of writing. */
static bool chunk_is_of_this_spool(const struct spool_writer *spool,
				   const struct spool_chunk *chunk)
{
	return (uintptr_t)chunk - (uintptr_t)spool->chunks < CHUNKS_MAX * sizeof(*chunk);
}

void spool_chunk_retire(struct spool_writer *spool, struct spool_chunk *chunk)
{
	if (!chunk_is_of_this_spool(spool, chunk))
		return;
	if (chunk->header->state != CHUNK_STATE_KEPT_FROM_RING)
		chunk->header->state = CHUNK_STATE_FULL;
	push_chunk(spool, &spool->retired_chunks, get_chunk_index(spool, chunk));
}

void spool_chunk_exclude_from_ring(struct spool_chunk *chunk)
{
	chunk->header->state = CHUNK_STATE_KEPT_FROM_RING;
}

void spool_chunk_exclude_from_ring_within_limit(const struct spool_writer *spool,
						struct spool_chunk *chunk)
{
	if (spool->ring && spool->ring_kept_bytes < spool->limit / KEPT_CHUNKS_RING_DIVISOR)
		spool_chunk_exclude_from_ring(chunk);
}

void spool_chunk_set_changes_in_place(struct spool_chunk *chunk)
{
	chunk->in_place = true;
}

void spool_chunk_pass_on_or_retire(struct spool_writer *spool, struct spool_chunk *chunk)
{
	if (!chunk_is_of_this_spool(spool, chunk))
		return;
	if (spool_chunk_get_capacity(chunk) - chunk->header->committed >=
	    SPOOL_PARTIAL_CHUNK_ROOM_LEAST)
		push_chunk(spool, &spool->partial_chunks, get_chunk_index(spool, chunk));
	else
		spool_chunk_retire(spool, chunk);
}

void spool_wake_chunk_makers(const struct spool_writer *spool)
{
	if (spool->chunk_maker_wakeup.wake)
		spool->chunk_maker_wakeup.wake(spool->chunk_maker_wakeup.context);
}

void spool_count_loss(struct spool_writer *spool, enum spool_loss loss)
{
	if (spool->header)
		atomic_fetch_add_explicit((_Atomic uint64_t *)&spool->header->losses[loss], 1,
					  memory_order_relaxed);
}

void spool_count_missing_chunk_loss(struct spool_writer *spool)
{
	uint32_t error = atomic_load_explicit(&spool->growth_errno, memory_order_relaxed);

	spool_count_loss(spool, error == SPOOL_LIMIT_ERRNO ? SPOOL_LOSS_MEMORY_LIMIT
				: error                    ? SPOOL_LOSS_DISK_FULL
							   : SPOOL_LOSS_NO_CHUNK);
}
