/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

int protobuf_init(struct protobuf *writer, size_t flush_at, protobuf_sink sink, void *sink_context)
{
	*writer = (struct protobuf){.flush_at = flush_at,
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

void protobuf_deinit(struct protobuf *writer)
{
	free(writer->bytes);
	*writer = (struct protobuf){0};
}

int protobuf_file_sink(void *stream, const uint8_t *bytes, size_t size)
{
	errno = 0;
	if (fwrite(bytes, 1, size, stream) == size)
		return 0;
	return errno != 0 ? -errno : -EIO;
}

void protobuf_flush(struct protobuf *writer)
{
	if (writer->depth != 0)
		return;
	if (writer->error == 0 && writer->used != 0)
		writer->error = writer->sink(writer->sink_context, writer->bytes, writer->used);
	writer->used = 0;
}

int protobuf_finish(struct protobuf *writer)
{
	if (writer->error == 0 && writer->depth != 0)
		writer->error = -EINVAL;
	protobuf_flush(writer);
	return writer->error;
}

bool protobuf_grow(struct protobuf *writer, size_t size)
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

static bool begin_field(struct protobuf *writer, unsigned field, enum protobuf_wire_type type,
			size_t payload)
{
	if (writer->error != 0)
		return false;
	if (writer->used >= writer->flush_at)
		protobuf_flush(writer);
	if (!protobuf_room(writer, 2 * PROTOBUF_VARINT_MAX + payload))
		return false;
	uint8_t *at = writer->bytes + writer->used;
	at = protobuf_put_varint(at, (uint64_t)field << 3 | type);
	writer->used = (size_t)(at - writer->bytes);
	return true;
}

void protobuf_open(struct protobuf *writer, unsigned field)
{
	if (writer->depth == PROTOBUF_DEPTH_MAX) {
		writer->error = writer->error != 0 ? writer->error : -EINVAL;
		return;
	}
	/* After an error the depth is still kept, so that opens and closes stay paired. */
	if (begin_field(writer, field, PROTOBUF_LENGTH, 1))
		writer->used++;
	writer->opened[writer->depth++] = writer->used;
}

void protobuf_close(struct protobuf *writer)
{
	if (writer->depth == 0) {
		writer->error = writer->error != 0 ? writer->error : -EINVAL;
		return;
	}
	size_t start = writer->opened[--writer->depth];
	if (writer->error != 0)
		return;
	uint8_t length[PROTOBUF_VARINT_MAX];
	size_t size = writer->used - start;
	size_t length_size = (size_t)(protobuf_put_varint(length, size) - length);
	if (length_size > 1) {
		if (!protobuf_room(writer, length_size))
			return;
		memmove(writer->bytes + start + length_size - 1, writer->bytes + start, size);
		writer->used += length_size - 1;
	}
	memcpy(writer->bytes + start - 1, length, length_size);
}

void protobuf_uint(struct protobuf *writer, unsigned field, uint64_t value)
{
	if (!begin_field(writer, field, PROTOBUF_VARINT, 0))
		return;
	uint8_t *at = protobuf_put_varint(writer->bytes + writer->used, value);
	writer->used = (size_t)(at - writer->bytes);
}

void protobuf_fixed64(struct protobuf *writer, unsigned field, uint64_t value)
{
	if (!begin_field(writer, field, PROTOBUF_FIXED64, 8))
		return;
	for (int byte = 0; byte < 8; byte++)
		writer->bytes[writer->used++] = (uint8_t)(value >> (8 * byte));
}

void protobuf_double(struct protobuf *writer, unsigned field, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof(bits));
	protobuf_fixed64(writer, field, bits);
}

void protobuf_bytes(struct protobuf *writer, unsigned field, const void *bytes, size_t size)
{
	if (!begin_field(writer, field, PROTOBUF_LENGTH, size))
		return;
	uint8_t *at = protobuf_put_varint(writer->bytes + writer->used, size);
	if (size != 0)
		memcpy(at, bytes, size);
	writer->used = (size_t)(at - writer->bytes) + size;
}

void protobuf_string(struct protobuf *writer, unsigned field, const char *text)
{
	size_t size = text == NULL ? 0 : strlen(text);
	if (utf8_is_valid(text, size)) {
		protobuf_bytes(writer, field, text, size);
		return;
	}
	char *clean = malloc(size * UTF8_REPLACEMENT_SIZE);
	if (clean == NULL) {
		writer->error = writer->error != 0 ? writer->error : -ENOMEM;
		return;
	}
	protobuf_bytes(writer, field, clean, utf8_clean(text, size, clean));
	free(clean);
}
