/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Device time by who launched the work: the innermost frame of interpreted code (Python) in the
 * stack of the launch; without one, the innermost frame that is neither the device runtime's nor
 * of a vendor's library of kernels.
 */
#ifndef KYMO_OUTPUT_DEVICE_LINES_H
#define KYMO_OUTPUT_DEVICE_LINES_H

#include "analysis/views.h"

struct device_line {
	uint32_t frame;             /* a function at a line */
	uint64_t own_ns, own_count; /* launched there; count: kernels, copies and fills */
	uint64_t inclusive_ns;      /* launched there or by what it calls; once a stack */
};

struct device_module {
	const char *name; /* of the file of native code, or the path of the source of Python */
	uint64_t ns, count;
};

struct device_lines {
	struct device_line *lines; /* by own time, the most first */
	size_t line_count;
	struct device_module *modules; /* by time, the most first */
	size_t module_count;
	uint64_t total_ns;
	uint64_t without_line_ns; /* whose stack has no such frame */
};

/* The frame that launched what stands at a node. MODEL_ENTRY_INDEX_NONE: there is none. */
uint32_t device_find_launching_frame(const struct session *session, uint32_t node);
/* "function (file:line)", or what is known of it. */
void device_format_launching_frame(char *buffer, size_t size, const struct session *session,
				   uint32_t frame);
/* 0 or -ENOMEM. Deinit is needed after either. */
int device_lines_build(struct device_lines *lines, const struct session *session);
void device_lines_deinit(struct device_lines *lines);

#endif
