/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The flame graph page before and after its data; made of web/ by web/embed.py while building.
 */
#ifndef KYMO_OUTPUT_WEB_HTML_PAGE_H
#define KYMO_OUTPUT_WEB_HTML_PAGE_H

#include <stddef.h>

extern const unsigned char html_page_head[], html_page_tail[];
extern const size_t html_page_head_size, html_page_tail_size;

#endif
