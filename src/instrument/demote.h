/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Giving up the tracing of functions that are short and called often (INSTRUMENT_DEMOTE): they are
 * only counted from then on, which costs a fraction and needs no room.
 *
 * Judged by the last words of each full record: calls that hold no other recorded call. What has
 * lost its callees to counting is short and alone in turn.
 */
#ifndef KYMO_INSTRUMENT_DEMOTE_H
#define KYMO_INSTRUMENT_DEMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "core/runtime.h"

/* The words of a record that is full; `ticks`: how long it took to fill. Any thread. */
void demote_enqueue_short_functions(const uint64_t *words, size_t count, uint64_t ticks);
/* Background thread: does what was decided. */
void demote_queued_functions(void);

#endif
