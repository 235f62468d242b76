/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See write_out.h. A chunk is quiet when nothing in it is known to change: it is looked at twice
 * more, and again when somebody resolves an id of a record in it (store_resolve_id()) or it gets
 * another use. Of the others, those whose checksum is another one are written. Readers find a
 * record whole, since its id comes last into the memory and first into the file.
 *
 * All records are in memory, so that a file that somebody shortened is written whole again.
 */
#include "nccl/write_out.h"

#include <stddef.h>

#include "common/checksum.h"
#include "common/syscalls.h"
#include "nccl/store.h"

#define QUIET_ROUNDS_MAX 2
#define SHORTENED_TEXT   "somebody shortened the file; it was written again"
#define DISK_FULL_TEXT   "the disk is full: the newest records are missing in the file"

static void set_first_problem(const char *text)
{
	char *problem = store.header->problem;

	if (*problem)
		return;
	for (unsigned room = sizeof(store.header->problem) - 1; room && *text; room--)
		*problem++ = *text++;
}

/* acquire: what the own thread changed in the records before it found them closed */
static bool chunk_is_quiet(const struct store_chunk_tracking *known, uint8_t state, uint64_t taken)
{
	return state == STORE_CHUNK_READY || state == STORE_CHUNK_FINISHED ||
	       atomic_load_explicit(&known->quiet_taken, memory_order_acquire) == taken;
}

/* Behind those taken there is nothing but zeros. */
static uint32_t get_bytes_in_use(uint32_t chunk, uint8_t state)
{
	unsigned kind = store.chunk_tracking[chunk].kind;

	if (state == STORE_CHUNK_READY)
		return NCCL_CHUNK_HEADER_SIZE;
	return NCCL_CHUNK_HEADER_SIZE +
	       store_get_used_record_count_of_chunk(chunk, kind) * store_get_record_size(kind);
}

/* Threads may be writing there: what is read half done has no id yet, or is read again.
 * ThreadSanitizer cannot know that. */
__attribute__((no_sanitize("thread"))) static void copy_records(void *to, const void *from,
								size_t size)
{
	const volatile uint64_t *words = from;
	uint64_t *copies = to;

	for (size_t i = 0; i < size / sizeof(uint64_t); i++)
		copies[i] = words[i];
}

static uint64_t compute_checksum(const void *bytes, size_t size)
{
	struct checksum_state sum = checksum_get_initial_state();
	uint64_t value;

	checksum_add_bytes(&sum, bytes, size);
	value = checksum_compute_final_value(&sum);
	return value ? value : 1;
}

static uint64_t get_place_of_chunk(uint32_t chunk)
{
	return NCCL_CHUNKS_OFFSET + (uint64_t)chunk * NCCL_CHUNK_SIZE;
}

/* Of the records that were there no reader may take one for one of the new kind: first the chunk
 * becomes a free one, then it gets its records, then its head. */
static bool write_chunk_of_new_use(int file, uint32_t chunk)
{
	static const struct nccl_chunk_header free_chunk = {.magic = NCCL_CHUNK_MAGIC};
	const struct nccl_chunk_header *header = store_get_chunk_header(chunk);
	const uint32_t size = NCCL_CHUNK_SIZE - NCCL_CHUNK_HEADER_SIZE;
	uint64_t place = get_place_of_chunk(chunk);

	return own_file_write(file, &free_chunk, sizeof(free_chunk), place) == sizeof(free_chunk) &&
	       own_file_write(file, header + 1, size, place + NCCL_CHUNK_HEADER_SIZE) == size &&
	       own_file_write(file, header, sizeof(*header), place) == sizeof(*header);
}

static bool write_chunk(int file, uint32_t chunk, uint8_t state)
{
	static _Alignas(64) uint8_t copy[NCCL_CHUNK_SIZE];
	struct store_chunk_tracking *known = &store.chunk_tracking[chunk];
	uint32_t bytes = get_bytes_in_use(chunk, state);
	uint64_t sum;

	if (atomic_exchange_explicit(&known->was_cleared, false, memory_order_acquire)) {
		known->written_checksum = 0;
		if (!write_chunk_of_new_use(file, chunk)) {
			atomic_store_explicit(&known->was_cleared, true, memory_order_relaxed);
			return false;
		}
	}
	copy_records(copy, store_get_chunk_header(chunk), bytes);
	sum = compute_checksum(copy, bytes);
	if (sum == known->written_checksum && bytes == known->written_bytes)
		return true;
	if (own_file_write(file, copy, bytes, get_place_of_chunk(chunk)) != bytes)
		return false;
	known->written_checksum = sum;
	known->written_bytes = bytes;
	store.written_chunk_count++;
	return true;
}

/* false: the disk is full. */
static bool write_chunk_if_changed(int file, uint32_t chunk)
{
	struct store_chunk_tracking *known = &store.chunk_tracking[chunk];
	struct nccl_chunk_header *header = store_get_chunk_header(chunk);
	uint8_t state = atomic_load_explicit(&known->state, memory_order_acquire);
	uint64_t taken = RELAXED_LOAD(*store_get_chunk_taken_count_word(chunk));
	bool quiet = chunk_is_quiet(known, state, taken);
	uint32_t changed = RELAXED_LOAD(header->changed);

	if (state == STORE_CHUNK_UNUSED)
		return true;
	if (!quiet || changed || taken != known->written_taken || state != known->written_state)
		known->quiet_rounds = 0;
	else if (known->quiet_rounds == QUIET_ROUNDS_MAX)
		return true;
	/* Who changes a record has resolved its id a moment before: two rounds see the change. */
	if (changed)
		RELAXED_STORE(header->changed, changed - 1);
	RELAXED_STORE(header->is_quiet, quiet);
	atomic_thread_fence(memory_order_seq_cst);
	if (!write_chunk(file, chunk, state))
		return false;
	known->written_taken = taken;
	known->written_state = state;
	known->quiet_rounds++;
	return true;
}

static void forget_what_is_written(uint32_t chunks)
{
	store.written_header_checksum = 0;
	for (uint32_t i = 0; i < chunks; i++) {
		store.chunk_tracking[i].quiet_rounds = 0;
		store.chunk_tracking[i].written_checksum = 0;
	}
}

/* The memory may have grown meanwhile: the header tells of the chunks that were written. */
static void write_header_and_names(int file, uint32_t chunks)
{
	static _Alignas(64) uint8_t copy[NCCL_CHUNKS_OFFSET];
	uint64_t sum, size = NCCL_CHUNKS_OFFSET + (uint64_t)chunks * NCCL_CHUNK_SIZE;

	for (size_t i = 0; i < sizeof(copy); i += sizeof(uint64_t))
		*(uint64_t *)(void *)(copy + i) =
			RELAXED_LOAD(*(uint64_t *)(void *)(store.base + i));
	((struct nccl_file_header *)(void *)copy)->file_size = size;
	sum = compute_checksum(copy, sizeof(copy));
	if (sum != store.written_header_checksum &&
	    own_file_write(file, copy, sizeof(copy), 0) == sizeof(copy))
		store.written_header_checksum = sum;
}

/* A file that was cut has grown again where the store has: with zeros. Every chunk that was written
 * begins with its magic number. */
static bool last_chunk_is_there(int file)
{
	uint32_t magic = 0, chunks = store.written_file_chunks;

	return !chunks ||
	       (sys_pread(file, &magic, sizeof(magic),
			  NCCL_CHUNKS_OFFSET + (uint64_t)(chunks - 1) * NCCL_CHUNK_SIZE) ==
			sizeof(magic) &&
		magic == NCCL_CHUNK_MAGIC);
}

bool write_out_new_records(int file)
{
	uint32_t chunks = atomic_load_explicit(&store.chunk_count, memory_order_acquire);
	int64_t size = own_file_get_size(&store.file, file);
	uint64_t before = store.written_chunk_count;
	bool complete = true;

	if (size < 0 || !store.header)
		return false;
	if ((uint64_t)size < NCCL_CHUNKS_OFFSET + (uint64_t)chunks * NCCL_CHUNK_SIZE ||
	    !last_chunk_is_there(file)) {
		forget_what_is_written(chunks);
		set_first_problem(SHORTENED_TEXT);
		if (sys_is_file_size_allowed(store.header->file_size))
			sys_call2(SYS_ftruncate, file, (long)store.header->file_size);
	}
	for (uint32_t i = 0; i < chunks && complete; i++)
		complete = write_chunk_if_changed(file, i);
	if (!complete && !store.is_disk_full) {
		store_count_loss(NCCL_LOSS_DISK_FULL);
		set_first_problem(DISK_FULL_TEXT);
	}
	store.is_disk_full = !complete;
	store.written_file_chunks = complete ? chunks : 0;
	write_header_and_names(file, chunks);
	return store.written_chunk_count != before;
}

void write_out_with_file_opened(void)
{
	int file = own_file_reopen(&store.file);

	if (file < 0)
		return;
	write_out_new_records(file);
	sys_close(file);
}
