/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/embedded_page.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

int embedded_page_inflate(const struct embedded_page *page, char **ret)
{
	uLongf size = page->head_size + page->tail_size;
	char *text = malloc(size);

	if (text == NULL ||
	    uncompress((Bytef *)text, &size, page->compressed, page->compressed_size) != Z_OK) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}
