/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The parts of the summary; see summary.c.
 */
#ifndef KYMO_OUTPUT_SUMMARY_H
#define KYMO_OUTPUT_SUMMARY_H

#include "output/output.h"

#define SUMMARY_WIDTH 100

struct summary {
	struct session *session;
	FILE *stream;
	enum view_measure measure;
	uint64_t total, samples; /* of the measure */
	size_t top;
	bool colour;
};

/* A heading, and text in the given role where colour is on. */
void summary_heading(const struct summary *summary, const char *title);
/* Prints lines of at most SUMMARY_WIDTH columns, broken at blanks, all indented by two. */
__attribute__((format(printf, 2, 3))) void summary_line(const struct summary *summary,
							const char *format, ...);
/* The same, as a warning. */
__attribute__((format(printf, 2, 3))) void summary_warning(const struct summary *summary,
							   const char *format, ...);

int summary_functions(const struct summary *summary);
int summary_paths(const struct summary *summary);
int summary_regions(const struct summary *summary);
int summary_calls(const struct summary *summary);
int summary_memory(const struct summary *summary);
int summary_nccl(const struct summary *summary);
void summary_gpu(const struct summary *summary);
void summary_counters(const struct summary *summary);
/* Such a run may have no samples, and none are missed. */
bool summary_has_counters(const struct summary *summary);
int summary_processes(const struct summary *summary);
int summary_threads(const struct summary *summary);
void summary_host(const struct summary *summary);
void summary_unresolved(const struct summary *summary);
void summary_losses(const struct summary *summary);
/* What was lost, behind the number of it; `loss` is an enum spool_loss. */
const char *summary_loss_text(int loss);
void summary_notices(const struct summary *summary);
void summary_overhead(const struct summary *summary);

#endif
