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

struct gzip {
	FILE *stream;
	z_stream deflate;
	uint8_t buffer[64 << 10];
};

/* 0 or -ENOMEM; deinit only after 0. */
int gzip_init(struct gzip *gzip, FILE *stream);
void gzip_deinit(struct gzip *gzip);
/* As protobuf_sink; the context is the struct gzip. */
int gzip_sink(void *context, const uint8_t *bytes, size_t size);
/* Writes the trailer. 0 or negative errno. */
int gzip_finish(struct gzip *gzip);

#endif
