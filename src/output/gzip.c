/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/gzip.h"

#include <errno.h>
#include <limits.h>

#include "output/protobuf.h"

/* zlib: window bits above 15 ask for a gzip header and trailer. */
#define GZIP_WINDOW_BITS     (15 + 16)
#define DEFLATE_MEMORY_LEVEL 8

int gzip_init(struct gzip_stream *gzip, FILE *stream)
{
	gzip->stream = stream;
	gzip->deflate_state = (z_stream){0};
	return deflateInit2(&gzip->deflate_state, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
			    GZIP_WINDOW_BITS, DEFLATE_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

void gzip_deinit(struct gzip_stream *gzip)
{
	deflateEnd(&gzip->deflate_state);
}

static int deflate_and_write_output(struct gzip_stream *gzip, int flush)
{
	int error = 0;

	do {
		gzip->deflate_state.next_out = gzip->buffer;
		gzip->deflate_state.avail_out = sizeof(gzip->buffer);
		deflate(&gzip->deflate_state, flush);
		error = protobuf_sink_write_to_file(gzip->stream, gzip->buffer,
						    sizeof(gzip->buffer) -
							    gzip->deflate_state.avail_out);
	} while (error == 0 && gzip->deflate_state.avail_out == 0);
	return error;
}

int gzip_write_bytes(void *context, const uint8_t *bytes, size_t size)
{
	struct gzip_stream *gzip = context;
	int error = 0;

	while (size != 0 && error == 0) {
		uInt piece = size > INT_MAX ? INT_MAX : (uInt)size;
		gzip->deflate_state.next_in = (Bytef *)bytes;
		gzip->deflate_state.avail_in = piece;
		error = deflate_and_write_output(gzip, Z_NO_FLUSH);
		bytes += piece;
		size -= piece;
	}
	return error;
}

int gzip_write_trailer(struct gzip_stream *gzip)
{
	return deflate_and_write_output(gzip, Z_FINISH);
}
