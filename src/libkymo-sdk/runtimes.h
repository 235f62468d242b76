/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Runtimes that announce themselves with their tables of functions (rocprofiler_set_api_table). The
 * tables are kept: tools that come later get them too.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

#define SDK_RUNTIME_INSTANCES 8

enum sdk_runtime_result {
	SDK_RUNTIME_TAKEN,
	SDK_RUNTIME_NO_TOOLS, /* kept */
	SDK_RUNTIME_WITHIN,   /* by a tool that is being initialized; kept */
	SDK_RUNTIME_UNKNOWN,
	SDK_RUNTIME_NO_TABLES,
	SDK_RUNTIME_TOO_MANY
};

/* id: 8 * library + instance. */
enum sdk_runtime_result sdk_runtime_announce(const char *name, uint64_t version, void **tables,
					     uint64_t count, bool only_if_tools, uint64_t *id);
/* Passes on what was kept to tools that are there by now. */
void sdk_runtimes_propagate(void);

/* false: there are not that many. */
bool sdk_runtime_at(unsigned number, const char **name, uint64_t *version, uint64_t *count);

/* A marker library's tables get functions that tell. */
void sdk_markers_wrap(uint64_t number, void **tables, uint64_t count);

#endif
