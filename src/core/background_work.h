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
int background_work_open_spool(struct runtime *runtime);
/* Loads unwind tables, chooses the source. 0 or negative errno. */
int background_work_prepare_sampling(struct runtime *runtime);
/* What is mapped now is known to the unwinder, and whoever remembers addresses of what is gone. */
void background_work_look_at_modules(struct runtime *runtime);
/* One round; returns how long there is nothing to do, ns. */
uint64_t background_work_run_round(struct runtime *runtime, bool flush);
/* Samples are taken a tenth as often as asked for, or as often again. Within a round. */
void background_work_set_sampling_reduced(struct runtime *runtime, bool reduced);
/* The program has ended without a word, or has executed another image: what its threads only
 * counted in memory is written. */
void background_work_write_final_records(struct runtime *runtime);
/* Last totals: the process ends. */
void background_work_write_last_records(struct runtime *runtime);
/* Closes all sources and writes the last totals: collection is over for good. */
void background_work_stop_collection_for_good(struct runtime *runtime);
/* All that is in memory goes to the file. Any of the helper's threads. */
void background_work_flush_spool(struct runtime *runtime);
/* The same when the program has ended without a word. */
void background_work_flush_after_death(struct runtime *runtime);

#endif
