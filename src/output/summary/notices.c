/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the collector had to say: fall-backs, collectors that turned themselves off, conflicts with
 * the program.
 */
#include <string.h>

#include "output/format.h"
#include "output/summary/private.h"

#define NOTICES_SHOWN_MAX 8

struct counted_notice {
	const char *text;
	uint64_t times;
};

static bool is_notice_shown(enum spool_notice kind)
{
	return kind == SPOOL_NOTICE_FALLBACK || kind == SPOOL_NOTICE_DISABLED ||
	       kind == SPOOL_NOTICE_CONFLICT || kind == SPOOL_NOTICE_THROTTLE ||
	       kind == SPOOL_NOTICE_NOT_FOLLOWED || kind == SPOOL_NOTICE_SWITCH_COST;
}

/* Adds to an equal text, or to the list while there is room; what does not fit is counted. */
static void add_or_count_notice(struct counted_notice *list, size_t *count, const char *text,
				uint64_t *more)
{
	for (size_t i = 0; i < *count; i++) {
		if (!strcmp(list[i].text, text)) {
			list[i].times++;
			return;
		}
	}
	if (*count == NOTICES_SHOWN_MAX) {
		++*more;
		return;
	}
	list[*count].text = text;
	list[(*count)++].times = 1;
}

void summary_write_notices(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	struct counted_notice list[NOTICES_SHOWN_MAX];
	size_t count = 0;
	uint64_t more = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (size_t k = 0; k < process->notice_count; k++) {
			if (is_notice_shown(process->notices[k].kind))
				add_or_count_notice(list, &count, process->notices[k].text, &more);
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (list[i].times == 1)
			summary_write_warning(summary, "%s", list[i].text);
		else
			summary_write_warning(summary, "%s (%s times)", list[i].text,
					      quantity_from_count(list[i].times).text);
	}
	if (more)
		summary_write_warning(summary, "%s further notices are in metadata.json",
				      quantity_from_count(more).text);
}
