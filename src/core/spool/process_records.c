/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process_records.h.
 */
#include "core/spool/process_records.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/base/ticks.h"
#include "core/spool/chunk_wait.h"

int process_records_init(struct process_records *track, struct spool_writer *spool)
{
	if (!track->scratch) {
		void *scratch = sys_mmap(NULL, PROCESS_RECORD_SIZE_MAX, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_mmap_failed(scratch))
			return -ENOMEM;
		track->scratch = scratch;
	}
	track->spool = spool;
	track->chunk = NULL;
	return 0;
}

void process_record_begin(struct process_records *track, enum spool_record kind)
{
	track->kind = kind;
	track->at = track->scratch;
}

static size_t get_free_record_bytes(const struct process_records *track)
{
	return PROCESS_RECORD_SIZE_MAX - (size_t)(track->at - track->scratch);
}

void process_record_append_unsigned(struct process_records *track, uint64_t value)
{
	if (get_free_record_bytes(track) >= LEB128_BYTES_MAX)
		track->at = leb128_write(track->at, value);
}

void process_record_append_fixed64(struct process_records *track, uint64_t value)
{
	if (get_free_record_bytes(track) >= 8)
		track->at = write_fixed64_little_endian(track->at, value);
}

/* Text longer than the room left is cut rather than losing the record. */
void process_record_append_bytes(struct process_records *track, const void *bytes, size_t size)
{
	if (get_free_record_bytes(track) < 2 * LEB128_BYTES_MAX)
		return;
	if (size > get_free_record_bytes(track) - 2 * LEB128_BYTES_MAX)
		size = get_free_record_bytes(track) - 2 * LEB128_BYTES_MAX;
	track->at = leb128_write(track->at, size);
	memcpy(track->at, bytes, size);
	track->at += size;
}

void process_record_append_string(struct process_records *track, const char *string)
{
	process_record_append_bytes(track, string ? string : "", string ? strlen(string) : 0);
}

/* Writers take what there is, and a small chunk rather than none; this thread can make large ones.
 */
static void make_large_chunk_ready(struct spool_writer *spool)
{
	int tries = 0;

	do {
		atomic_fetch_or_explicit(&spool->wanted, 1u << SPOOL_CHUNK_CLASS_LARGE,
					 memory_order_relaxed);
		if (!spool_refill_ready_chunks(spool, spool->fd))
			sys_call0(SYS_sched_yield); /* another may be at it */
	} while (!atomic_load_explicit(&spool->ready_chunks[SPOOL_CHUNK_CLASS_LARGE].count,
				       memory_order_relaxed) &&
		 !spool->growth_errno && ++tries < 100);
}

static bool ensure_chunk_room_for_record(struct process_records *track, size_t size)
{
	bool large = size > SPOOL_CHUNK_SMALL_SIZE - SPOOL_CHUNK_HEADER_SIZE;

	if (track->chunk && spool_chunk_get_capacity(track->chunk) - track->used >= size)
		return true;
	if (track->chunk)
		spool_chunk_retire(track->spool, track->chunk);
	track->used = 0;
	if (large &&
	    !atomic_load_explicit(&track->spool->ready_chunks[SPOOL_CHUNK_CLASS_LARGE].count,
				  memory_order_relaxed))
		make_large_chunk_ready(track->spool);
	track->chunk = spool_chunk_take(track->spool,
					large ? SPOOL_CHUNK_CLASS_LARGE : SPOOL_CHUNK_CLASS_SMALL);
	if (!track->chunk) /* this thread is one of those that make chunks */
		track->chunk = chunk_refill_and_take(track->spool);
	if (!track->chunk)
		return false;
	/* Without modules and clocks the samples say nothing. */
	spool_chunk_exclude_from_ring_within_limit(track->spool, track->chunk);
	return spool_chunk_get_capacity(track->chunk) >= size;
}

void process_record_end_and_commit(struct process_records *track)
{
	size_t size = (size_t)(track->at - track->scratch);
	uint8_t *at;

	if (!ensure_chunk_room_for_record(track, size + 1 + LEB128_BYTES_MAX)) {
		spool_count_missing_chunk_loss(track->spool);
		return;
	}
	at = spool_chunk_get_data(track->chunk) + track->used;
	*at++ = (uint8_t)track->kind;
	at = leb128_write(at, size);
	memcpy(at, track->scratch, size);
	track->used = (uint32_t)(at + size - spool_chunk_get_data(track->chunk));
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit((_Atomic uint32_t *)&track->chunk->header->committed, track->used,
			      memory_order_release);
}

void process_record_write_clock(struct process_records *track)
{
	struct clocks_snapshot now = read_clocks_snapshot();

	process_record_begin(track, SPOOL_RECORD_CLOCK);
	process_record_append_fixed64(track, now.ticks);
	process_record_append_fixed64(track, now.monotonic_ns);
	process_record_append_fixed64(track, now.boottime_ns);
	process_record_append_fixed64(track, now.realtime_ns);
	process_record_end_and_commit(track);
}

void process_record_write_window(struct process_records *track, uint64_t ticks, bool open)
{
	process_record_begin(track, SPOOL_RECORD_REGION_WINDOW);
	process_record_append_fixed64(track, ticks);
	process_record_append_unsigned(track, open);
	process_record_end_and_commit(track);
}

void process_record_write_notice(struct process_records *track, enum spool_notice kind,
				 uint64_t argument, const char *text)
{
	process_record_begin(track, SPOOL_RECORD_NOTICE);
	process_record_append_fixed64(track, ticks_now());
	process_record_append_unsigned(track, kind);
	process_record_append_unsigned(track, argument);
	process_record_append_string(track, text);
	process_record_end_and_commit(track);
}
