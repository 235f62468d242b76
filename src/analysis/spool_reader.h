/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One spool file to chunks, and one chunk to records; the only code that knows the file's framing.
 *
 * Life: spool_file_open() checks the header and walks the chunk headers once into an index; a later
 * reader of the same file sees exactly the bytes the index knows, also while the program still
 * writes and moves its chunks. spool_file_close_temporarily() gives the descriptor and the buffer
 * back between passes (a session can hold thousands of files).
 *
 * Files are read with pread, not mapped: a file that shrinks under us must not be a SIGBUS.
 * Whatever the bytes are, the worst outcome is less data and a larger torn count.
 */
#ifndef KYMO_ANALYSIS_SPOOL_READER_H
#define KYMO_ANALYSIS_SPOOL_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "common/leb128.h"
#include "common/problem.h"
#include "kymo/spool.h"

#define SPOOL_BUFFER_PADDING_BYTES 8
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are read as the file has them");

struct spool_chunk {
	uint64_t offset, sequence;
	uint32_t committed;
	bool samples; /* set by whoever looked for them first; the others can spare themselves */
};

/* What was read of a file last. */
struct spool_chunk_buffer {
	uint8_t *bytes;
	size_t size;
};

struct spool_file {
	int descriptor; /* -1 while paused */
	char *path;
	uid_t owner; /* of the file: the process's user when it was made */
	uint64_t size;
	struct spool_file_header header;
	struct spool_chunk *chunks; /* in order of sequence */
	size_t chunk_count, chunk_capacity;
	uint64_t settled; /* before this, no chunk of the index can turn up in another place */
	uint64_t torn_chunks, torn_bytes;
	struct spool_chunk_buffer buffer;
};

/* Returns 0 or a negative errno: -ENODATA not a spool file, -EPROTO another version, -ENOMSG
 * nothing in it: the process ended or was replaced before it began to record. */
int spool_file_open(const char *path, struct spool_file *ret, struct problem *problem);
void spool_file_close(struct spool_file *file);
void spool_file_close_temporarily(struct spool_file *file);
int spool_file_reopen(struct spool_file *file, struct problem *problem);

/* What is left of one chunk. */
struct spool_chunk_record_cursor {
	const uint8_t *at, *end;
};

/* Reads a chunk's records into the file's buffer, valid until the next call. A chunk that was
 * reused or cut off since the index was made gives an empty cursor. 0 or negative errno. */
int spool_file_read_chunk(struct spool_file *file, size_t chunk,
			  struct spool_chunk_record_cursor *ret);
/* The same for `size` bytes from `from` on, counted from the chunk's first record. */
int spool_file_read_chunk_part(struct spool_file *file, size_t chunk, size_t from, size_t size,
			       struct spool_chunk_record_cursor *ret);
/* The same into a buffer of the caller's, who frees its bytes. */
int spool_file_read_chunk_part_into(struct spool_file *file, struct spool_chunk_buffer *buffer,
				    size_t chunk, size_t from, size_t size,
				    struct spool_chunk_record_cursor *ret);

/* One record's payload, or what is left of it. Reading past the end gives zeros and sets `bad`. The
 * chunk's buffer goes on for SPOOL_BUFFER_PADDING_BYTES bytes, so that numbers can be loaded as
 * whole words. */
struct spool_record_payload_cursor {
	const uint8_t *at, *end;
	uint8_t kind;
	bool bad;
};

/* The next record; false at the end of the chunk. cursor->at == cursor->end then, unless the rest
 * is torn. */
static inline bool spool_read_next_record(struct spool_chunk_record_cursor *cursor,
					  struct spool_record_payload_cursor *ret)
{
	const uint8_t *at = cursor->at;
	uint64_t length;

	if (cursor->end - at < 2 || at[0] == 0)
		return false;
	ret->kind = *at++;
	if (*at < 0x80)
		length = *at++;
	else if (!leb128_read(&at, cursor->end, &length))
		return false;
	if (length > (uint64_t)(cursor->end - at))
		return false;
	ret->at = at;
	ret->end = at + length;
	ret->bad = false;
	cursor->at = ret->end;
	return true;
}

/* Numbers that are cut off or longer than 8 bytes. */
uint64_t spool_read_unsigned_slowly(struct spool_record_payload_cursor *payload);

/* Takes the seven-bit groups of a number together, all at once: a loop over its bytes would be
 * mispredicted at every other one. For numbers whose length varies. */
static inline uint64_t spool_read_multibyte_unsigned(struct spool_record_payload_cursor *payload)
{
	uint64_t word, last;
	unsigned bits;

	memcpy(&word, payload->at, sizeof(word));
	last = ~word & 0x8080808080808080;
	bits = last ? (unsigned)__builtin_ctzll(last) + 1 : 72;
	if (__builtin_expect(bits / 8 > 8 || bits / 8 > (uint64_t)(payload->end - payload->at),
			     0)) {
		/* A copy, so that *payload can stay in registers. */
		struct spool_record_payload_cursor copy = *payload;

		word = spool_read_unsigned_slowly(&copy);
		*payload = copy;
		return word;
	}
	payload->at += bits / 8;
	word &= UINT64_MAX >> (64 - bits);
	word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
	word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
	return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
}

/* For numbers that nearly always take one byte. */
static inline uint64_t spool_read_unsigned(struct spool_record_payload_cursor *payload)
{
	if (payload->at < payload->end && *payload->at < 0x80)
		return *payload->at++;
	return spool_read_multibyte_unsigned(payload);
}

static inline int64_t spool_read_signed(struct spool_record_payload_cursor *payload)
{
	return zigzag_decode(spool_read_multibyte_unsigned(payload));
}

static inline uint64_t spool_read_fixed_u64(struct spool_record_payload_cursor *payload)
{
	uint64_t value = 0;

	if (payload->end - payload->at < 8) {
		payload->bad = true;
		payload->at = payload->end;
		return 0;
	}
	for (unsigned i = 0; i < 8; i++)
		value |= (uint64_t)payload->at[i] << (8 * i);
	payload->at += 8;
	return value;
}

/* Length-prefixed bytes; never NULL. */
static inline const uint8_t *
spool_read_length_prefixed_bytes(struct spool_record_payload_cursor *payload, size_t *ret_size)
{
	uint64_t size = spool_read_unsigned(payload);
	const uint8_t *bytes = payload->at;

	if (size > (uint64_t)(payload->end - payload->at)) {
		payload->bad = true;
		size = 0;
	}
	payload->at += size;
	*ret_size = (size_t)size;
	return bytes;
}

#endif
