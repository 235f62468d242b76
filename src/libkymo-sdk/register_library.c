/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of librocprofiler-register, which runtimes call at their start: this library is the
 * one that it would look for, so tables go straight to it. Names, codes and the layout of the info
 * are those of rocprofiler-register/rocprofiler-register.h.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/runtimes.h"
#include "libkymo-sdk/state.h"

enum register_code {
	REGISTER_SUCCESS,
	REGISTER_NO_TOOLS,
	REGISTER_DEADLOCK,
	REGISTER_BAD_API_TABLE_LENGTH,
	REGISTER_UNSUPPORTED_API,
	REGISTER_INVALID_API_ADDRESS,
	REGISTER_ROCPROFILER_ERROR,
	REGISTER_EXCESS_API_INSTANCES
};

struct register_identifier {
	uint64_t handle;
};

struct register_info {
	size_t size;
	const char *common_name;
	uint32_t lib_version;
	uint64_t api_table_length;
};

typedef int (*register_info_function)(struct register_info *info, void *data);

enum register_code rocprofiler_register_library_api_table(const char *name,
							  uint32_t (*import)(void),
							  uint32_t version, void **tables,
							  uint64_t count,
							  struct register_identifier *identifier);
const char *rocprofiler_register_error_string(enum register_code code);
enum register_code rocprofiler_register_iterate_registration_info(register_info_function callback,
								  void *data);
enum register_code rocprofiler_register_invoke_nonpropagated_registrations(void);
enum register_code rocprofiler_register_invoke_all_registrations(void);

static bool register_is_off(void)
{
	const char *value = getenv("ROCPROFILER_REGISTER_ENABLED");

	return value && (!strcmp(value, "0") || !strcasecmp(value, "off") ||
			 !strcasecmp(value, "false") || !strcasecmp(value, "no"));
}

static bool register_is_forced(void)
{
	const char *value = getenv("ROCPROFILER_REGISTER_FORCE_LOAD");

	return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "off") != 0 &&
	       strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0;
}

SDK_EXPORT enum register_code
rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
				       void **tables, uint64_t count,
				       struct register_identifier *identifier)
{
	static const enum register_code codes[] = {
		[SDK_RUNTIME_TAKEN] = REGISTER_SUCCESS,
		[SDK_RUNTIME_NO_TOOLS] = REGISTER_NO_TOOLS,
		[SDK_RUNTIME_WITHIN] = REGISTER_DEADLOCK,
		[SDK_RUNTIME_UNKNOWN] = REGISTER_UNSUPPORTED_API,
		[SDK_RUNTIME_NO_TABLES] = REGISTER_BAD_API_TABLE_LENGTH,
		[SDK_RUNTIME_TOO_MANY] = REGISTER_EXCESS_API_INSTANCES,
	};
	uint64_t id = 0;
	enum sdk_runtime_result result;

	(void)import;
	if (register_is_off())
		return REGISTER_SUCCESS;
	result = sdk_runtime_announce(name, version, tables, count, !register_is_forced(), &id);
	if (identifier && result <= SDK_RUNTIME_WITHIN)
		identifier->handle = id;
	return codes[result];
}

SDK_EXPORT const char *rocprofiler_register_error_string(enum register_code code)
{
	static const char *const texts[] = {
		"Success",
		"No tool asked for it",
		"The library registered itself again while its tables were passed on",
		"The number of tables is not valid",
		"No library of this name is supported",
		"The import function does not belong to the library",
		"The profiler did not take the tables",
		"Too many libraries of this name",
	};

	return (unsigned)code < sizeof(texts) / sizeof(texts[0]) ? texts[code] : "Unknown error";
}

SDK_EXPORT enum register_code
rocprofiler_register_iterate_registration_info(register_info_function callback, void *data)
{
	const char *name;
	uint64_t version, count;

	for (unsigned i = 0; callback && sdk_runtime_at(i, &name, &version, &count); i++) {
		struct register_info info = {sizeof(info), name, (uint32_t)version, count};

		if (callback(&info, data))
			break;
	}
	return REGISTER_SUCCESS;
}

SDK_EXPORT enum register_code rocprofiler_register_invoke_nonpropagated_registrations(void)
{
	rocprofiler_status_t status = sdk_register(NULL);

	if (status == ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED)
		return REGISTER_DEADLOCK;
	if (status)
		return REGISTER_ROCPROFILER_ERROR;
	sdk_runtimes_propagate();
	return REGISTER_SUCCESS;
}

/* What has been passed on stays with its tools: there is only one who takes tables. */
SDK_EXPORT enum register_code rocprofiler_register_invoke_all_registrations(void)
{
	return rocprofiler_register_invoke_nonpropagated_registrations();
}
