/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Pages of results (web/), which web/embed.py makes into compressed bytes while building: what
 * stands before the data of a result, and what stands behind it.
 */
#ifndef KYMO_OUTPUT_EMBEDDED_PAGE_H
#define KYMO_OUTPUT_EMBEDDED_PAGE_H

#include <stddef.h>

struct embedded_page {
	const unsigned char *compressed; /* zlib, head and tail in one */
	size_t compressed_size, head_size, tail_size;
};

extern const struct embedded_page report_page, causal_page;

/* *ret is malloc'ed: head_size bytes of head, then the tail. 0 or -ENOMEM. */
int embedded_page_inflate(const struct embedded_page *page, char **ret);

#endif
