/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where threads blocked and who woke them: one row for all waits of a thread with the same
 * functions and the same waker.
 */
#include "analysis/waits/waits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/summary/private.h"

#define LABEL_BYTES 512

struct wait_row {
	char *label, *waker;
	uint64_t waits, ns, longest_ns;
};

static bool is_of_module(const struct model_wait_frame *frame, const char *module)
{
	return frame->module && module && !strcmp(frame->module, module);
}

/* The function that a library was entered by, with its caller: "flush() > pthread_cond_signal". In
 * the kernel, and in the library that called it, the others say less. */
static void append_stack(char *label, const struct model_wait_stack *stack)
{
	const char *library;
	uint32_t at = 0, entry;
	size_t used = strlen(label);

	while (at < stack->frame_count &&
	       is_of_module(&stack->frames[at], SPOOL_KERNEL_MODULE_PATH))
		at++;
	if (at == stack->frame_count)
		at = 0;
	library = stack->frame_count ? stack->frames[at].module : NULL;
	entry = at;
	while (at < stack->frame_count && is_of_module(&stack->frames[at], library))
		entry = at++;
	if (entry + 1 < stack->frame_count && at == entry + 1)
		snprintf(label + used, LABEL_BYTES - used, "%.60s > %.60s",
			 stack->frames[at].function, stack->frames[entry].function);
	else if (stack->frame_count)
		snprintf(label + used, LABEL_BYTES - used, "%.60s", stack->frames[0].function);
}

static void append_text(char *label, const char *text)
{
	size_t used = strlen(label);

	snprintf(label + used, LABEL_BYTES - used, "%s", text);
}

static void append_waker(char *label, const struct session *session, const struct model_wait *wait)
{
	size_t used = strlen(label);

	switch (wait->waker) {
	case SPOOL_WAKER_THREAD:
		snprintf(label + used, LABEL_BYTES - used, "< %s%.16s (%" PRIu32 ")%s",
			 wait->waker_pid == session->processes[wait->process].pid
				 ? ""
				 : "another process, ",
			 wait->waker_name, wait->waker_tid,
			 wait->waker_stack.frame_count ? ": " : "");
		append_stack(label, &wait->waker_stack);
		break;
	case SPOOL_WAKER_INTERRUPT:
		append_text(label, "< a timer or a device");
		break;
	case SPOOL_WAKER_NOBODY:
		append_text(label, "not woken until the end");
		break;
	default:
		break;
	}
}

static void make_label(char label[LABEL_BYTES], const struct session *session,
		       const struct model_wait *wait)
{
	snprintf(label, LABEL_BYTES, "%.16s (%" PRIu32 "): ",
		 wait->thread != MODEL_ENTRY_INDEX_NONE ? session->threads[wait->thread].name
							: "threads",
		 wait->tid);
	append_stack(label, &wait->stack);
}

static void free_row(struct wait_row *row)
{
	free(row->label);
	free(row->waker);
}

static int compare_by_label(const void *left, const void *right)
{
	const struct wait_row *a = left, *b = right;
	int order = strcmp(a->label, b->label);

	return order ? order : strcmp(a->waker, b->waker);
}

static int compare_by_time(const void *left, const void *right)
{
	const struct wait_row *a = left, *b = right;

	return a->ns > b->ns ? -1 : a->ns < b->ns ? 1 : 0;
}

static size_t merge_rows(struct wait_row *rows, size_t count)
{
	size_t kept = 0;

	qsort(rows, count, sizeof(*rows), compare_by_label);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare_by_label(&rows[kept - 1], &rows[i])) {
			rows[kept - 1].waits += rows[i].waits;
			rows[kept - 1].ns += rows[i].ns;
			if (rows[i].longest_ns > rows[kept - 1].longest_ns)
				rows[kept - 1].longest_ns = rows[i].longest_ns;
			free_row(&rows[i]);
		} else {
			rows[kept++] = rows[i];
		}
	}
	qsort(rows, kept, sizeof(*rows), compare_by_time);
	return kept;
}

static void write_rows(const struct summary_writer *summary, const struct wait_row *rows,
		       size_t count, uint64_t total)
{
	uint64_t lost = 0;

	summary_write_heading(summary, "Where threads block");
	summary_write_row(
		summary,
		(const struct summary_cell[]){
			{"share", 10, 0}, {"blocked", 10, 1}, {"waits", 9, 2}, {"longest", 10, 3}},
		4, "thread: caller > callee, and who wakes it");
	for (size_t i = 0; i < count && i < summary->top; i++) {
		summary_write_row(summary,
				  (const struct summary_cell[]){
					  {quantity_from_share(rows[i].ns, total).text, 10, 0},
					  {quantity_from_ns(rows[i].ns).text, 10, 1},
					  {quantity_from_count(rows[i].waits).text, 9, 2},
					  {quantity_from_ns(rows[i].longest_ns).text, 10, 3}},
				  4, rows[i].label);
		if (*rows[i].waker)
			summary_write_row(
				summary,
				(const struct summary_cell[]){
					{"", 10, 0}, {"", 10, 1}, {"", 9, 2}, {"", 10, 3}},
				4, rows[i].waker);
	}
	for (uint32_t i = 0; i < summary->session->process_count; i++)
		lost += summary->session->processes[i].losses[SPOOL_LOSS_PERF_RING];
	if (lost)
		summary_write_warning(
			summary,
			"%s records of the kernel were lost: waits at these times are "
			"missing",
			quantity_from_count(lost).text);
	if (count > summary->top)
		summary_write_line(summary, "... and %s more (profile.json has all)",
				   quantity_from_count(count - summary->top).text);
}

int summary_write_waits(const struct summary_writer *summary)
{
	const struct model_waits *waits = session_get_waits(summary->session);
	struct wait_row *rows;
	size_t count = 0;
	int result = 0;

	if (!waits->count)
		return 0;
	rows = calloc(waits->count, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	for (size_t i = 0; result == 0 && i < waits->count; i++) {
		const struct model_wait *wait = &waits->list[i];
		char label[LABEL_BYTES], waker[LABEL_BYTES] = "";

		make_label(label, summary->session, wait);
		append_waker(waker, summary->session, wait);
		rows[count] = (struct wait_row){strdup(label), strdup(waker), wait->waits, wait->ns,
						wait->longest_ns};
		if (!rows[count].label || !rows[count].waker)
			result = -ENOMEM;
		count++;
	}
	if (result == 0) {
		count = merge_rows(rows, count);
		write_rows(summary, rows, count, waits->ns);
	}
	for (size_t i = 0; i < count; i++)
		free_row(&rows[i]);
	free(rows);
	return result;
}
