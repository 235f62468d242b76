/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Runtimes that announce themselves with their tables of functions (rocprofiler_set_api_table). The
 * tables are kept: tools that come later get them too.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_RUNTIMES_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

#define SDK_RUNTIME_INSTANCES_MAX 8

enum sdk_runtime_announce_result {
	SDK_RUNTIME_ANNOUNCE_PASSED_TO_TOOLS,
	SDK_RUNTIME_ANNOUNCE_NO_TOOLS,            /* kept */
	SDK_RUNTIME_ANNOUNCE_BY_CONFIGURING_TOOL, /* by a tool that is being initialized; kept */
	SDK_RUNTIME_ANNOUNCE_UNKNOWN_RUNTIME,
	SDK_RUNTIME_ANNOUNCE_NO_TABLES,
	SDK_RUNTIME_ANNOUNCE_TOO_MANY_RUNTIMES
};

/* id: 8 * library + instance. */
enum sdk_runtime_announce_result sdk_runtime_announce(const char *name, uint64_t version,
						      void **tables, uint64_t count,
						      bool only_if_tools, uint64_t *id);
/* Passes on what was kept to tools that are there by now. */
void sdk_runtimes_pass_on_tables(void);

/* false: there are not that many. */
bool sdk_runtime_query_by_number(unsigned number, const char **name, uint64_t *version,
				 uint64_t *count);

/* Agents as a tool asks for them. While tools are initialized devices are looked for whose runtime
 * the program has not used yet. */
uint32_t sdk_agents_get_count_for_tool(void);

/* A marker library's tables get functions that tell. */
void sdk_marker_tables_wrap(uint64_t number, void **tables, uint64_t count);

#endif
