/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

int protobuf_init(struct protobuf_writer *writer, size_t flush_at, protobuf_sink_function sink,
		  void *sink_context)
{
	*writer = (struct protobuf_writer){.flush_threshold_bytes = flush_at,
					   .capacity = flush_at + 4096,
					   .sink = sink,
					   .sink_context = sink_context};
	writer->bytes = malloc(writer->capacity);
	if (writer->bytes == NULL) {
		writer->capacity = 0;
		writer->error = -ENOMEM;
	}
	return writer->error;
}

void protobuf_deinit(struct protobuf_writer *writer)
{
	free(writer->bytes);
	*writer = (struct protobuf_writer){0};
}

int protobuf_sink_write_to_file(void *stream, const uint8_t *bytes, size_t size)
{
	errno = 0;
	if (fwrite(bytes, 1, size, stream) == size)
		return 0;
	return errno != 0 ? -errno : -EIO;
}

void protobuf_flush_buffer(struct protobuf_writer *writer)
{
	if (writer->depth != 0)
		return;
	if (writer->error == 0 && writer->used != 0)
		writer->error = writer->sink(writer->sink_context, writer->bytes, writer->used);
	writer->used = 0;
}

int protobuf_finish(struct protobuf_writer *writer)
{
	if (writer->error == 0 && writer->depth != 0)
		writer->error = -EINVAL;
	protobuf_flush_buffer(writer);
	return writer->error;
}

bool protobuf_grow_buffer(struct protobuf_writer *writer, size_t size)
{
	if (writer->error != 0)
		return false;
	size_t capacity = writer->capacity * 2;
	while (capacity - writer->used < size)
		capacity *= 2;
	uint8_t *bytes = realloc(writer->bytes, capacity);
	if (bytes == NULL) {
		writer->error = -ENOMEM;
		return false;
	}
	writer->bytes = bytes;
	writer->capacity = capacity;
	return true;
}

static bool write_field_tag(struct protobuf_writer *writer, unsigned field,
			    enum protobuf_wire_type type, size_t payload)
{
	if (writer->error != 0)
		return false;
	if (writer->used >= writer->flush_threshold_bytes)
		protobuf_flush_buffer(writer);
	if (!protobuf_reserve_bytes(writer, 2 * PROTOBUF_VARINT_BYTES_MAX + payload))
		return false;
	uint8_t *at = writer->bytes + writer->used;
	at = protobuf_encode_varint(at, (uint64_t)field << 3 | type);
	writer->used = (size_t)(at - writer->bytes);
	return true;
}

void protobuf_open_message(struct protobuf_writer *writer, unsigned field)
{
	if (writer->depth == PROTOBUF_DEPTH_MAX) {
		writer->error = writer->error != 0 ? writer->error : -EINVAL;
		return;
	}
	/* After an error the depth is still kept, so that opens and closes stay paired. */
	if (write_field_tag(writer, field, PROTOBUF_WIRE_LENGTH_DELIMITED, 1))
		writer->used++;
	writer->opened[writer->depth++] = writer->used;
}

void protobuf_close_message(struct protobuf_writer *writer)
{
	if (writer->depth == 0) {
		writer->error = writer->error != 0 ? writer->error : -EINVAL;
		return;
	}
	size_t start = writer->opened[--writer->depth];
	if (writer->error != 0)
		return;
	uint8_t length[PROTOBUF_VARINT_BYTES_MAX];
	size_t size = writer->used - start;
	size_t length_size = (size_t)(protobuf_encode_varint(length, size) - length);
	if (length_size > 1) {
		if (!protobuf_reserve_bytes(writer, length_size))
			return;
		memmove(writer->bytes + start + length_size - 1, writer->bytes + start, size);
		writer->used += length_size - 1;
	}
	memcpy(writer->bytes + start - 1, length, length_size);
}

void protobuf_write_uint(struct protobuf_writer *writer, unsigned field, uint64_t value)
{
	if (!write_field_tag(writer, field, PROTOBUF_WIRE_VARINT, 0))
		return;
	uint8_t *at = protobuf_encode_varint(writer->bytes + writer->used, value);
	writer->used = (size_t)(at - writer->bytes);
}

void protobuf_write_fixed64(struct protobuf_writer *writer, unsigned field, uint64_t value)
{
	if (!write_field_tag(writer, field, PROTOBUF_WIRE_FIXED64, 8))
		return;
	for (int byte = 0; byte < 8; byte++)
		writer->bytes[writer->used++] = (uint8_t)(value >> (8 * byte));
}

void protobuf_write_double(struct protobuf_writer *writer, unsigned field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	protobuf_write_fixed64(writer, field, bits);
}

void protobuf_write_bytes(struct protobuf_writer *writer, unsigned field, const void *bytes,
			  size_t size)
{
	if (!write_field_tag(writer, field, PROTOBUF_WIRE_LENGTH_DELIMITED, size))
		return;
	uint8_t *at = protobuf_encode_varint(writer->bytes + writer->used, size);
	if (size != 0)
		memcpy(at, bytes, size);
	writer->used = (size_t)(at - writer->bytes) + size;
}

void protobuf_write_string(struct protobuf_writer *writer, unsigned field, const char *text)
{
	size_t size = text == NULL ? 0 : strlen(text);
	if (utf8_is_valid(text, size)) {
		protobuf_write_bytes(writer, field, text, size);
		return;
	}
	char *clean = malloc(size * UTF8_REPLACEMENT_SIZE);
	if (clean == NULL) {
		writer->error = writer->error != 0 ? writer->error : -ENOMEM;
		return;
	}
	protobuf_write_bytes(writer, field, clean, utf8_copy_replacing_invalid(text, size, clean));
	free(clean);
}
