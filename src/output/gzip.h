/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A protobuf sink that compresses to gzip on the way to a stream.
 */
#ifndef KYMO_OUTPUT_GZIP_H
#define KYMO_OUTPUT_GZIP_H

#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

struct gzip_stream {
	FILE *stream;
	z_stream deflate_state;
	uint8_t buffer[64 << 10];
};

/* 0 or -ENOMEM; deinit only after 0. */
int gzip_init(struct gzip_stream *gzip, FILE *stream);
void gzip_deinit(struct gzip_stream *gzip);
/* As protobuf_sink_function; the context is the struct gzip_stream. */
int gzip_write_bytes(void *context, const uint8_t *bytes, size_t size);
/* Writes the trailer. 0 or negative errno. */
int gzip_write_trailer(struct gzip_stream *gzip);

#endif
