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

#include "output/perfetto.h"

int perfetto_bundle_sink(void *context, const uint8_t *bytes, size_t size)
{
	struct perfetto_bundle *bundle = context;
	uLong bound = compressBound((uLong)size);
	if (bundle->capacity < bound) {
		free(bundle->compressed);
		bundle->capacity = 0;
		bundle->compressed = malloc(bound);
		if (bundle->compressed == NULL)
			return -ENOMEM;
		bundle->capacity = bound;
	}
	uLongf compressed_size = bound;
	if (compress2(bundle->compressed, &compressed_size, bytes, (uLong)size, 1) != Z_OK)
		return -ENOMEM;

	/* Both headers come out of the sizes: field 50 in field 1. */
	uint8_t inner[2 * PROTOBUF_VARINT_MAX], outer[2 * PROTOBUF_VARINT_MAX];
	uint8_t *end = protobuf_put_varint(inner, PACKET_COMPRESSED_PACKETS << 3 | PROTOBUF_LENGTH);
	size_t inner_size = (size_t)(protobuf_put_varint(end, compressed_size) - inner);
	end = protobuf_put_varint(outer, TRACE_PACKET << 3 | PROTOBUF_LENGTH);
	size_t outer_size =
		(size_t)(protobuf_put_varint(end, inner_size + compressed_size) - outer);

	int error = protobuf_file_sink(bundle->stream, outer, outer_size);
	if (error == 0)
		error = protobuf_file_sink(bundle->stream, inner, inner_size);
	if (error == 0)
		error = protobuf_file_sink(bundle->stream, bundle->compressed, compressed_size);
	return error;
}

void perfetto_bundle_deinit(struct perfetto_bundle *bundle)
{
	free(bundle->compressed);
	*bundle = (struct perfetto_bundle){0};
}
