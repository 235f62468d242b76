/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a result lacks, in words. The summary has all of it; who is shown none is notified of data
 * that was to be there and is not.
 */
#include "analysis/nccl/nccl.h"
#include "output/format.h"
#include "output/incomplete/incomplete.h"
#include "output/nccl/rows.h"
#include "output/summary/private.h"

struct loss_reporter {
	void (*report_text)(void *context, const char *text);
	void *context;
};

/* "12 records ...", "3 MiB of ...". */
static void report_loss(const struct loss_reporter *reporting, struct quantity_text quantity,
			const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s %s", quantity.text, what);
	reporting->report_text(reporting->context, text);
}

static void report_nccl_losses(const struct loss_reporter *reporting, const struct nccl_data *data)
{
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_sum_one_loss_of_all_processes(data, (enum nccl_loss)i);

		if (count && nccl_loss_means_missing_data((enum nccl_loss)i))
			report_loss(reporting, quantity_from_count(count),
				    nccl_get_loss_text((enum nccl_loss)i));
	}
}

void output_report_losses(const struct session *session,
			  void (*report)(void *context, const char *text), void *context)
{
	struct loss_reporter reporting = {report, context};

	incomplete_visit_recording_losses(session, false, report, context);
	if (session->unreadable_file_count)
		report_loss(&reporting, quantity_from_count(session->unreadable_file_count),
			    "files could not be read");
	if (session_get_nccl_data(session))
		report_nccl_losses(&reporting, session_get_nccl_data(session));
}
