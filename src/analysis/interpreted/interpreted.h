/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of interpreters in the session model: what the code objects are that frames of samples
 * name by their ids, and which source line a position in one is.
 *
 * Everything comes from the spool file: the program's files and the interpreter are not needed.
 */
#ifndef KYMO_ANALYSIS_INTERPRETED_INTERPRETED_H
#define KYMO_ANALYSIS_INTERPRETED_INTERPRETED_H

#include "analysis/session.h"

struct interpreted_code {
	const char *name, *file; /* qualified name; path as the interpreter has it, "" unknown */
	uint32_t first_line;
	enum spool_line_table table_kind;
	uint8_t *table;
	uint32_t table_size;
	/* Coverage: it was looked at whether it runs, and did; lines that ran, each once at least.
	 */
	bool is_measured, is_called;
	uint32_t *lines;
	size_t line_count, line_capacity;
};

#define INTERPRETED_DATA_KIND_NAME "interpreted"

extern const struct session_data_kind_operations interpreted_data_kind_operations;

/* Calls `visit` for each code object of a process until it returns an error, which is returned. */
int interpreted_code_visit(const struct session *session, uint32_t process,
			   int (*visit)(void *context, const struct interpreted_code *code),
			   void *context);
/* The same for each line that has code, more than once maybe. */
int interpreted_code_visit_lines(const struct interpreted_code *code,
				 int (*visit)(void *context, uint32_t line), void *context);
/* Was it looked at which code of Python runs? */
bool interpreted_code_has_coverage(const struct session *session);

/* NULL: the file does not describe it. */
const struct interpreted_code *interpreted_code_find(const struct session *session,
						     uint32_t process, uint32_t id);
/* The source line of a position as frames have it (kymo/spool.h); the first line of the function
 * where the table has none. */
uint32_t interpreted_code_find_line(const struct interpreted_code *code, uint32_t position);

static inline uint32_t interpreted_frame_get_code_id(uint64_t frame)
{
	return (uint32_t)((frame & (SPOOL_INTERPRETED_FRAME_BIT - 1)) >>
			  SPOOL_INTERPRETED_POSITION_BITS);
}

static inline uint32_t interpreted_frame_get_position(uint64_t frame)
{
	return (uint32_t)(frame & ((1u << SPOOL_INTERPRETED_POSITION_BITS) - 1));
}

#endif
