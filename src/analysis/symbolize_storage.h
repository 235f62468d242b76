/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a symbolize_result's strings live in: a pool when they were made, the bytes of a cache file
 * when they were read.
 */
#ifndef KYMO_ANALYSIS_SYMBOLIZE_STORAGE_H
#define KYMO_ANALYSIS_SYMBOLIZE_STORAGE_H

#include <stdint.h>

#include "binary/string_pool.h"

struct symbolize_storage {
	struct string_pool *pool; /* or NULL */
	uint8_t *bytes;           /* or NULL */
	char *advice;             /* or NULL */
};

void symbolize_storage_destroy(struct symbolize_storage *storage);

#endif
