/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Text in databases. Names come from programs and need not be UTF-8, which readers of SQLite's text
 * insist on; values are bound, never put into statements.
 */
#ifndef KYMO_OUTPUT_SQL_TEXT_H
#define KYMO_OUTPUT_SQL_TEXT_H

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

static inline void sql_bind_text(sqlite3_stmt *statement, int place, const char *text)
{
	size_t size = text ? strlen(text) : 0;
	char *clean;

	if (utf8_is_valid(text ? text : "", size)) {
		sqlite3_bind_text(statement, place, text, -1, SQLITE_TRANSIENT);
		return;
	}
	clean = malloc(size * UTF8_REPLACEMENT_SIZE);
	if (!clean) {
		sqlite3_bind_text(statement, place, UTF8_REPLACEMENT, -1, SQLITE_STATIC);
		return;
	}
	size = utf8_copy_replacing_invalid(text, size, clean);
	sqlite3_bind_text(statement, place, clean, (int)size, free);
}

#endif
