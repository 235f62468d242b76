/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Compressed bundles: one packet whose compressed_packets field is a zlib stream of whole packets.
 * Level 1, because higher ones cost up to nine times the time for a fifth of the size.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "output/perfetto/perfetto.h"

int perfetto_bundle_compress_and_write(void *context, const uint8_t *bytes, size_t size)
{
	struct perfetto_compressed_bundle_sink *bundle = context;
	uLong bound = compressBound((uLong)size);
	if (bundle->capacity < bound) {
		free(bundle->compressed_buffer);
		bundle->capacity = 0;
		bundle->compressed_buffer = malloc(bound);
		if (bundle->compressed_buffer == NULL)
			return -ENOMEM;
		bundle->capacity = bound;
	}
	uLongf compressed_size = bound;
	if (compress2(bundle->compressed_buffer, &compressed_size, bytes, (uLong)size, 1) != Z_OK)
		return -ENOMEM;

	/* Both headers come out of the sizes: field 50 in field 1. */
	uint8_t inner[2 * PROTOBUF_VARINT_BYTES_MAX], outer[2 * PROTOBUF_VARINT_BYTES_MAX];
	uint8_t *end = protobuf_encode_varint(inner, PACKET_FIELD_COMPRESSED_PACKETS << 3 |
							     PROTOBUF_WIRE_LENGTH_DELIMITED);
	size_t inner_size = (size_t)(protobuf_encode_varint(end, compressed_size) - inner);
	end = protobuf_encode_varint(outer,
				     TRACE_FIELD_PACKET << 3 | PROTOBUF_WIRE_LENGTH_DELIMITED);
	size_t outer_size =
		(size_t)(protobuf_encode_varint(end, inner_size + compressed_size) - outer);

	int error = protobuf_sink_write_to_file(bundle->stream, outer, outer_size);
	if (error == 0)
		error = protobuf_sink_write_to_file(bundle->stream, inner, inner_size);
	if (error == 0)
		error = protobuf_sink_write_to_file(bundle->stream, bundle->compressed_buffer,
						    compressed_size);
	return error;
}

void perfetto_compressed_bundle_sink_deinit(struct perfetto_compressed_bundle_sink *bundle)
{
	free(bundle->compressed_buffer);
	*bundle = (struct perfetto_compressed_bundle_sink){0};
}
