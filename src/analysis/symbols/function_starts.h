/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the functions of a stripped file begin, from the search table of its unwind information
 * (.eh_frame_hdr), which stripping leaves. Without it all code of a file that has no symbols would
 * be one function.
 */
#ifndef KYMO_ANALYSIS_SYMBOLS_FUNCTION_STARTS_H
#define KYMO_ANALYSIS_SYMBOLS_FUNCTION_STARTS_H

#include <stddef.h>
#include <stdint.h>

struct function_starts {
	uint64_t *addresses; /* link-time, ascending */
	size_t count;
};

/* Leaves it empty where the file is gone, another one, or has no table that can be read. */
void function_starts_read(struct function_starts *starts, const char *path, const uint8_t *build_id,
			  uint32_t build_id_size);
void function_starts_deinit(struct function_starts *starts);
/* The start of the function that holds the address, or 0. */
uint64_t function_starts_find_by_address(const struct function_starts *starts, uint64_t address);

#endif
