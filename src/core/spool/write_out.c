/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is in memory is written to the spool file: by the helper in each of its rounds, and a last
 * time when the program has ended, however it did (the helper holds the memory until then).
 */
#include <fcntl.h>
#include <stddef.h>
#include <time.h>

#include "common/syscalls.h"
#include "common/time_units.h"
#include "core/base/ticks.h"
#include "core/spool/places.h"

#define REWRITE_IN_PLACE_PERIOD_NS SECOND_NS
#define REFILL_LOCK_WAIT_MAX_NS    (300 * MILLISECOND_NS) /* others write 16 MiB in one turn */
#define REFILL_LOCK_RETRY_PAUSE_NS 100000
#define SLOW_DISK_WAIT_MAX_NS      (10 * SECOND_NS)

static bool write_all_bytes_at(int file, const void *bytes, size_t size, uint64_t offset)
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

/* The records before the header, whose length says how many there are: who reads meanwhile finds no
 * length without its records. */
bool spool_write_chunk(struct spool_writer *spool, int file, struct spool_chunk *chunk, bool whole)
{
	struct spool_chunk_header header = *chunk->header;
	uint32_t from;

	/* acquire: the records up to there are in memory */
	header.committed = atomic_load_explicit((_Atomic uint32_t *)&chunk->header->committed,
						memory_order_acquire);
	from = whole ? 0 : chunk->written;
	if (chunk->written == SPOOL_CHUNK_WRITTEN_WHOLE || header.committed <= from)
		return true;
	if (!write_all_bytes_at(file, spool_chunk_get_data(chunk) + from, header.committed - from,
				chunk->offset + SPOOL_CHUNK_HEADER_SIZE + from) ||
	    !write_all_bytes_at(file, &header, SPOOL_CHUNK_HEADER_SIZE, chunk->offset)) {
		spool_count_loss(spool, SPOOL_LOSS_DISK_FULL);
		return false;
	}
	chunk->written = header.committed;
	return true;
}

/* The fields of requests belong to who asks. */
static void write_spool_header(const struct spool_writer *spool, int file)
{
	const size_t requests = offsetof(struct spool_file_header, control_command);
	const size_t answers = offsetof(struct spool_file_header, control_answer);
	const uint8_t *header = (const uint8_t *)spool->header;

	write_all_bytes_at(file, header, requests, 0);
	write_all_bytes_at(file, header + answers,
			   offsetof(struct spool_file_header, reserved) - answers, answers);
}

uint32_t spool_read_control_request(const struct spool_writer *spool, uint32_t *ret_command)
{
	const size_t requests = offsetof(struct spool_file_header, control_command);
	uint32_t read[2];

	if (sys_pread(spool->fd, read, sizeof(read), requests) != sizeof(read))
		return 0;
	*ret_command = read[0];
	return read[1];
}

static bool take_refill_lock_with_timeout(struct spool_writer *spool, uint64_t end_ns)
{
	struct timespec pause = {0, REFILL_LOCK_RETRY_PAUSE_NS};

	while (!spool_try_refill_lock(spool)) {
		if (read_posix_clock_ns(CLOCK_MONOTONIC) >= end_ns)
			return false;
		sys_call4(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (long)&pause, 0);
	}
	return true;
}

/* Somebody cut the file: what is in memory still is written again. */
static bool spool_file_is_shortened(const struct spool_writer *spool, int file)
{
	long size = sys_call3(SYS_lseek, file, 0, SEEK_END);

	return size >= 0 && (uint64_t)size < spool->file_size;
}

static void write_segment_chunks(struct spool_writer *spool, int file,
				 const struct spool_segment *segment, bool again, bool in_place)
{
	for (uint32_t i = segment->first_chunk_index;
	     i < segment->first_chunk_index + segment->chunk_count; i++) {
		struct spool_chunk *chunk = &spool->chunks[i];

		if (chunk->written == SPOOL_CHUNK_WRITTEN_WHOLE || !chunk->header->sequence)
			continue;
		if (again)
			chunk->written = 0;
		spool_write_chunk(spool, file, chunk, chunk->in_place && in_place);
	}
}

static void write_all_segments(struct spool_writer *spool, int file, bool in_place)
{
	bool again = spool_file_is_shortened(spool, file);

	if (again) {
		spool->was_file_shortened = true;
		/* Else it would be seen as cut in every round. */
		sys_call2(SYS_ftruncate, file, (long)spool->file_size);
	}
	for (uint32_t i = spool->first_mapped_segment_index; i < spool->segment_count; i++) {
		if (spool->segments[i].address)
			write_segment_chunks(spool, file, &spool->segments[i], again, in_place);
	}
	write_spool_header(spool, file);
}

void spool_write_new_records(struct spool_writer *spool, int file, bool all)
{
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC);
	bool in_place = all || now >= spool->next_in_place_rewrite_ns;

	if (!spool->header ||
	    !take_refill_lock_with_timeout(spool, all ? now + REFILL_LOCK_WAIT_MAX_NS : now))
		return;
	if (in_place)
		spool->next_in_place_rewrite_ns = now + REWRITE_IN_PLACE_PERIOD_NS;
	write_all_segments(spool, file, in_place);
	atomic_store_explicit(&spool->refill_lock, 0, memory_order_release);
}

/* Else it has ended with the program, in the midst of making chunks. */
static bool refill_lock_holder_is_in_helper(const struct spool_writer *spool)
{
	uint32_t tid = atomic_load_explicit(&spool->refill_lock, memory_order_relaxed);

	return tid && !sys_call3(SYS_tgkill, sys_getpid(), tid, 0);
}

void spool_write_after_program_end(struct spool_writer *spool, int file)
{
	uint64_t now = read_posix_clock_ns(CLOCK_MONOTONIC), end = now + SLOW_DISK_WAIT_MAX_NS;

	if (!spool->header)
		return;
	while (!take_refill_lock_with_timeout(spool, now + REFILL_LOCK_WAIT_MAX_NS)) {
		if (!refill_lock_holder_is_in_helper(spool))
			break;
		/* Two at once would take each other's extensions of the file for a cut, and cut
		 * it. What the holder writes is there, and what is written later is not. */
		now = read_posix_clock_ns(CLOCK_MONOTONIC);
		if (now >= end)
			return;
	}
	/* The lock is kept: the helper's other threads go on until it exits. */
	write_all_segments(spool, file, true);
}
