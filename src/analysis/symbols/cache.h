/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Results of the symbolizer on disk, one file a module: a second report over the same program need
 * not read its debug information again, and a module that was rebuilt or removed since can still be
 * shown.
 *
 * A cache file is worth nothing by itself: whatever is wrong with it, it is as if it were not
 * there.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_CACHE_H
#define KYMO_ANALYSIS_SYMBOLS_CACHE_H

#include "analysis/symbols/symbols.h"

struct symbolizer_cache_key {
	const char *directory; /* as in symbolizer_request */
	const uint8_t *build_id;
	uint32_t build_id_size; /* 0: nothing is cached */
	bool with_inlines;
	uint64_t source_files_hash; /* of the files that the result was made from; 0 when loading:
				       any */
};

/* The whole cached result and the offsets it is for (malloc'ed, ascending, one for each chain).
 * -ENOENT: nothing usable; -ENOMEM. */
int symbolizer_cache_load(const struct symbolizer_cache_key *key,
			  struct symbolizer_request_result *ret, uint64_t **ret_offsets);
/* Replaces the module's file at once or not at all. Failing is no problem to anyone. */
int symbolizer_cache_store(const struct symbolizer_cache_key *key,
			   const struct symbolizer_request_result *result, const uint64_t *offsets);

#endif
