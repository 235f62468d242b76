/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Marks and ranges, from roctx (runtimes.h has sdk_marker_tables_wrap()) or from elsewhere.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_MARKERS_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_MARKERS_H

#include <stdint.h>

/* Ranges as one event (MARKER_CORE_RANGE_API). Messages are copied. */
void sdk_range_report_mark(const char *message);
void sdk_range_begin_on_thread(const char *message);
void sdk_range_end_on_thread(void);
void sdk_range_begin_in_process(uint64_t id, const char *message);
void sdk_range_end_in_process(uint64_t id);

/* Markers that do not come from roctx: told as if they did. */
void sdk_marker_report_mark(const char *message);
void sdk_marker_report_range_push(const char *message);
void sdk_marker_report_range_pop(void);
uint64_t sdk_marker_report_range_start(const char *message);
void sdk_marker_report_range_stop(uint64_t id);

#endif
