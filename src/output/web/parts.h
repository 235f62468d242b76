/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What report.html has beside the tree. Each ends with a comma. 0 or negative errno.
 */
#ifndef KYMO_OUTPUT_WEB_PARTS_H
#define KYMO_OUTPUT_WEB_PARTS_H

#include "output/web/page.h"

int page_write_timeline(struct page_writer *page);
int page_write_source(struct page_writer *page);
/* Nothing where kymo is built without a disassembler. */
int page_write_assembly(struct page_writer *page);

#endif
