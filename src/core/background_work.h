/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the background thread does: begin once, round after round, end once. Background thread only.
 */
#ifndef KYMO_CORE_BACKGROUND_WORK_H
#define KYMO_CORE_BACKGROUND_WORK_H

#include <stdbool.h>
#include <stdint.h>

struct runtime;

/* Opens the spool and describes the process: from here on regions can be recorded. 0 or negative
 * errno. */
int background_work_open(struct runtime *runtime);
/* Loads unwind tables, chooses the source. 0 or negative errno. */
int background_work_begin(struct runtime *runtime);
/* One round; returns how long there is nothing to do, ns. */
uint64_t background_work_round(struct runtime *runtime, bool flush);
/* Samples are taken a tenth as often as asked for, or as often again. Within a round. */
void background_work_sample_seldom(struct runtime *runtime, bool seldom);
/* Last totals: the process ends. */
void background_work_end(struct runtime *runtime);
/* Closes all sources and writes the last totals: collection is over for good. */
void background_work_stop(struct runtime *runtime);

#endif
