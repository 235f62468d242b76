/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Marks and ranges, from roctx (runtimes.h has sdk_markers_wrap()) or from elsewhere.
 */
#ifndef KYMO_LIBKYMO_SDK_MARKERS_H
#define KYMO_LIBKYMO_SDK_MARKERS_H

#include <stdint.h>

/* Ranges as one event (MARKER_CORE_RANGE_API). Messages are copied. */
void sdk_range_mark(const char *message);
void sdk_range_push(const char *message);
void sdk_range_pop(void);
void sdk_range_start(uint64_t id, const char *message);
void sdk_range_stop(uint64_t id);

/* Markers that do not come from roctx: told as if they did. */
void sdk_marker_mark(const char *message);
void sdk_marker_push(const char *message);
void sdk_marker_pop(void);
uint64_t sdk_marker_start(const char *message);
void sdk_marker_stop(uint64_t id);

#endif
