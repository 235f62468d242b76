/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See track.h.
 */
#include "core/track.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/chunk_wait.h"
#include "core/ticks.h"

int track_init(struct track *track, struct spool_writer *spool)
{
	if (!track->scratch) {
		void *scratch = sys_mmap(NULL, TRACK_RECORD_MAX, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (sys_failed(scratch))
			return -ENOMEM;
		track->scratch = scratch;
	}
	track->spool = spool;
	track->chunk = NULL;
	return 0;
}

void track_begin(struct track *track, enum spool_record kind)
{
	track->kind = kind;
	track->at = track->scratch;
}

static size_t room(const struct track *track)
{
	return TRACK_RECORD_MAX - (size_t)(track->at - track->scratch);
}

void track_unsigned(struct track *track, uint64_t value)
{
	if (room(track) >= LEB128_MAX)
		track->at = leb128_put(track->at, value);
}

void track_fixed(struct track *track, uint64_t value)
{
	if (room(track) >= 8)
		track->at = leb128_put_fixed(track->at, value);
}

/* Text longer than the room left is cut rather than losing the record. */
void track_bytes(struct track *track, const void *bytes, size_t size)
{
	if (room(track) < 2 * LEB128_MAX)
		return;
	if (size > room(track) - 2 * LEB128_MAX)
		size = room(track) - 2 * LEB128_MAX;
	track->at = leb128_put(track->at, size);
	memcpy(track->at, bytes, size);
	track->at += size;
}

void track_string(struct track *track, const char *string)
{
	track_bytes(track, string ? string : "", string ? strlen(string) : 0);
}

/* Writers take what there is, and a small chunk rather than none; this thread can make large ones.
 */
static void make_large(struct spool_writer *spool)
{
	int tries = 0;

	do {
		atomic_fetch_or_explicit(&spool->wanted, 1u << SPOOL_LARGE, memory_order_relaxed);
		if (!spool_refill(spool, spool->fd))
			sys_call0(SYS_sched_yield); /* another may be at it */
	} while (!atomic_load_explicit(&spool->ready[SPOOL_LARGE].count, memory_order_relaxed) &&
		 !spool->disk_error && ++tries < 100);
}

static bool make_room(struct track *track, size_t size)
{
	bool large = size > SPOOL_CHUNK_SMALL - SPOOL_CHUNK_HEADER_SIZE;

	if (track->chunk && spool_chunk_capacity(track->chunk) - track->used >= size)
		return true;
	if (track->chunk)
		spool_chunk_retire(track->spool, track->chunk);
	track->used = 0;
	if (large &&
	    !atomic_load_explicit(&track->spool->ready[SPOOL_LARGE].count, memory_order_relaxed))
		make_large(track->spool);
	track->chunk = spool_chunk_take(track->spool, large ? SPOOL_LARGE : SPOOL_SMALL);
	if (!track->chunk) /* this thread is one of those that make chunks */
		track->chunk = chunk_make(track->spool);
	return track->chunk && spool_chunk_capacity(track->chunk) >= size;
}

void track_end(struct track *track)
{
	size_t size = (size_t)(track->at - track->scratch);
	uint8_t *at;

	if (!make_room(track, size + 1 + LEB128_MAX)) {
		spool_count_no_chunk(track->spool);
		return;
	}
	at = spool_chunk_data(track->chunk) + track->used;
	*at++ = (uint8_t)track->kind;
	at = leb128_put(at, size);
	memcpy(at, track->scratch, size);
	track->used = (uint32_t)(at + size - spool_chunk_data(track->chunk));
	/* release: a reader that sees the length sees the bytes */
	atomic_store_explicit((_Atomic uint32_t *)&track->chunk->header->committed, track->used,
			      memory_order_release);
}

void track_clock(struct track *track)
{
	struct ticks_clocks now = ticks_clocks_now();

	track_begin(track, SPOOL_RECORD_CLOCK);
	track_fixed(track, now.ticks);
	track_fixed(track, now.monotonic_ns);
	track_fixed(track, now.boottime_ns);
	track_fixed(track, now.realtime_ns);
	track_end(track);
}

void track_notice(struct track *track, enum spool_notice kind, uint64_t argument, const char *text)
{
	track_begin(track, SPOOL_RECORD_NOTICE);
	track_fixed(track, ticks_now());
	track_unsigned(track, kind);
	track_unsigned(track, argument);
	track_string(track, text);
	track_end(track);
}
