/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/gzip.h"

#include <errno.h>
#include <limits.h>

#include "output/protobuf.h"

/* zlib: window bits above 15 ask for a gzip header and trailer. */
#define GZIP_WINDOW_BITS (15 + 16)
#define MEMORY_LEVEL     8

int gzip_init(struct gzip *gzip, FILE *stream)
{
	gzip->stream = stream;
	gzip->deflate = (z_stream){0};
	return deflateInit2(&gzip->deflate, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS,
			    MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK
		       ? 0
		       : -ENOMEM;
}

void gzip_deinit(struct gzip *gzip)
{
	deflateEnd(&gzip->deflate);
}

static int run(struct gzip *gzip, int flush)
{
	int error = 0;

	do {
		gzip->deflate.next_out = gzip->buffer;
		gzip->deflate.avail_out = sizeof(gzip->buffer);
		deflate(&gzip->deflate, flush);
		error = protobuf_file_sink(gzip->stream, gzip->buffer,
					   sizeof(gzip->buffer) - gzip->deflate.avail_out);
	} while (error == 0 && gzip->deflate.avail_out == 0);
	return error;
}

int gzip_sink(void *context, const uint8_t *bytes, size_t size)
{
	struct gzip *gzip = context;
	int error = 0;

	while (size != 0 && error == 0) {
		uInt piece = size > INT_MAX ? INT_MAX : (uInt)size;
		gzip->deflate.next_in = (Bytef *)bytes;
		gzip->deflate.avail_in = piece;
		error = run(gzip, Z_NO_FLUSH);
		bytes += piece;
		size -= piece;
	}
	return error;
}

int gzip_finish(struct gzip *gzip)
{
	return run(gzip, Z_FINISH);
}
