/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names in folded stacks.
 */
#ifndef KYMO_OUTPUT_FOLDED_NAME_H
#define KYMO_OUTPUT_FOLDED_NAME_H

#include <stdio.h>

/* A name's own semicolons and line ends would be taken for the format's: they become ':' and
 * blanks. What a terminal would obey is shown as in other texts (common/utf8.h). */
void folded_write_name(FILE *stream, const char *name);

#endif
