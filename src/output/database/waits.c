/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of waits: where threads blocked, and who woke them.
 */
#include "analysis/waits/waits.h"

#include <errno.h>
#include <stdlib.h>

#include "output/database/rows.h"
#include "output/database/tables.h"

/* "a;b;c", as in the view of stacks. */
static int put_wait_stack(struct table_rows *rows, const struct model_wait_stack *stack)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return -ENOMEM;
	for (uint32_t i = stack->frame_count; i-- > 0;)
		fprintf(stream, "%s%s", stack->frames[i].function, i ? ";" : "");
	if (fclose(stream)) {
		free(text);
		return -ENOMEM;
	}
	put_text(rows, text);
	free(text);
	return 0;
}

int database_write_waits(sqlite3 *handle, const struct session *session)
{
	const struct model_waits *waits = session_get_waits(session);
	struct table_rows rows;
	int error = 0;

	table_rows_begin(&rows, handle, "kymo_waits", 11);
	for (size_t i = 0; !error && i < waits->count; i++) {
		const struct model_wait *wait = &waits->list[i];
		bool is_thread = wait->waker == SPOOL_WAKER_THREAD;

		put_count(&rows, wait->process);
		put_count(&rows, wait->tid);
		put_count(&rows, wait->waits);
		put_count(&rows, wait->ns);
		put_count(&rows, wait->longest_ns);
		error = put_wait_stack(&rows, &wait->stack);
		put_text(&rows, spool_waker_get_name(wait->waker));
		put_null_unless(&rows, is_thread, wait->waker_pid);
		put_null_unless(&rows, is_thread, wait->waker_tid);
		put_text(&rows, wait->waker_name);
		if (!error)
			error = put_wait_stack(&rows, &wait->waker_stack);
		put_row(&rows);
	}
	return error ? error : table_rows_finish(&rows);
}
