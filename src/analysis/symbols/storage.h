/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a symbolizer_request_result's strings live in: a pool when they were made, the bytes of a
 * cache file when they were read.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_STORAGE_H
#define KYMO_ANALYSIS_SYMBOLS_STORAGE_H

#include <stdint.h>

#include "binary/string_pool.h"

struct symbolizer_storage {
	struct string_pool *string_pool; /* or NULL */
	uint8_t *bytes;                  /* or NULL */
	char *advice;                    /* or NULL */
};

void symbolizer_storage_destroy(struct symbolizer_storage *storage);

#endif
