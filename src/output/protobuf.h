/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Protocol buffers, the writing half: tags, varints and nested messages into one growing buffer.
 *
 * A nested message is opened with one byte reserved for its length. Nearly all of ours are shorter
 * than 128 bytes and are closed by storing that byte; longer ones are moved up by the bytes that
 * their length needs. Encodings are therefore always minimal.
 *
 * Life: protobuf_init() on the caller's storage; any number of fields; protobuf_finish() flushes
 * and says whether anything went wrong; protobuf_deinit() frees. Whenever no message is open and
 * the buffer is full enough it goes to the sink, so a sink always gets whole top-level fields, and
 * memory is bounded by the largest of those. Errors stick: after one, calls do nothing useful but
 * are harmless.
 *
 * The inline functions without checks (protobuf_put_*) are for hot paths that reserved the room
 * with protobuf_reserve_bytes() before. Not thread-safe.
 *
 * Encoding: https://protobuf.dev/programming-guides/encoding/
 */
#ifndef KYMO_OUTPUT_PROTOBUF_H
#define KYMO_OUTPUT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PROTOBUF_DEPTH_MAX        12
#define PROTOBUF_VARINT_BYTES_MAX 10

enum protobuf_wire_type {
	PROTOBUF_WIRE_VARINT = 0,
	PROTOBUF_WIRE_FIXED64 = 1,
	PROTOBUF_WIRE_LENGTH_DELIMITED = 2
};

/* Takes whole fields; 0 or a negative errno. */
typedef int (*protobuf_sink_function)(void *context, const uint8_t *bytes, size_t size);

struct protobuf_writer {
	uint8_t *bytes;
	size_t used, capacity;
	size_t flush_threshold_bytes;      /* bytes after which a whole field goes to the sink */
	size_t opened[PROTOBUF_DEPTH_MAX]; /* where the content of each open message begins */
	unsigned depth;
	int error; /* negative errno; the first one stays */
	protobuf_sink_function sink;
	void *sink_context;
};

/* flush_at: how much to collect for one call of the sink. */
int protobuf_init(struct protobuf_writer *writer, size_t flush_at, protobuf_sink_function sink,
		  void *sink_context);
void protobuf_deinit(struct protobuf_writer *writer);
/* Hands the rest to the sink. 0 or the first error. */
int protobuf_finish(struct protobuf_writer *writer);
/* A sink that writes to the FILE given as its context. */
int protobuf_sink_write_to_file(void *stream, const uint8_t *bytes, size_t size);

void protobuf_open_message(struct protobuf_writer *writer, unsigned field);
void protobuf_close_message(struct protobuf_writer *writer);
void protobuf_write_uint(struct protobuf_writer *writer, unsigned field, uint64_t value);
void protobuf_write_fixed64(struct protobuf_writer *writer, unsigned field, uint64_t value);
void protobuf_write_double(struct protobuf_writer *writer, unsigned field, double value);
void protobuf_write_bytes(struct protobuf_writer *writer, unsigned field, const void *bytes,
			  size_t size);
/* Text; bytes that are not UTF-8 become U+FFFD, because strict readers refuse the whole message.
 * NULL is written as empty. */
void protobuf_write_string(struct protobuf_writer *writer, unsigned field, const char *text);

/* Slow paths of protobuf_reserve_bytes() and protobuf_commit_bytes(). */
bool protobuf_grow_buffer(struct protobuf_writer *writer, size_t size);
void protobuf_flush_buffer(struct protobuf_writer *writer);

/* Makes sure that `size` more bytes can be put; false after an error. */
static inline bool protobuf_reserve_bytes(struct protobuf_writer *writer, size_t size)
{
	return writer->capacity - writer->used >= size || protobuf_grow_buffer(writer, size);
}

static inline uint8_t *protobuf_encode_varint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

static inline uint8_t *protobuf_encode_uint_field(uint8_t *at, unsigned field, uint64_t value)
{
	at = protobuf_encode_varint(at, (uint64_t)field << 3 | PROTOBUF_WIRE_VARINT);
	return protobuf_encode_varint(at, value);
}

/* Takes over what was put up to `at`; the end of a top-level field. */
static inline void protobuf_commit_bytes(struct protobuf_writer *writer, const uint8_t *at)
{
	writer->used = (size_t)(at - writer->bytes);
	if (writer->used >= writer->flush_threshold_bytes)
		protobuf_flush_buffer(writer);
}

#endif
