/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of librocprofiler-register, which runtimes call at their start: this library is the
 * one that it would look for, so tables go straight to it. Names, error_code_by_announce_result and
 * the layout of the info are those of rocprofiler-register/rocprofiler-register.h.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/array.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/runtimes/clients.h"
#include "libkymo-sdk/runtimes/runtimes.h"

enum registration_error_code {
	REGISTER_SUCCESS,
	REGISTER_NO_TOOLS,
	REGISTER_DEADLOCK,
	REGISTER_BAD_API_TABLE_LENGTH,
	REGISTER_UNSUPPORTED_API,
	REGISTER_INVALID_API_ADDRESS,
	REGISTER_ROCPROFILER_ERROR,
	REGISTER_EXCESS_API_INSTANCES
};

struct library_registration_identifier {
	uint64_t handle;
};

struct library_registration_info {
	size_t size;
	const char *common_name;
	uint32_t lib_version;
	uint64_t api_table_length;
};

typedef int (*registration_info_callback)(struct library_registration_info *info, void *data);

enum registration_error_code
rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
				       void **tables, uint64_t count,
				       struct library_registration_identifier *identifier);
const char *rocprofiler_register_error_string(enum registration_error_code code);
enum registration_error_code
rocprofiler_register_iterate_registration_info(registration_info_callback callback, void *data);
enum registration_error_code rocprofiler_register_invoke_nonpropagated_registrations(void);
enum registration_error_code rocprofiler_register_invoke_all_registrations(void);

static bool is_registration_disabled(void)
{
	const char *value = secure_getenv("ROCPROFILER_REGISTER_ENABLED");

	return value && (!strcmp(value, "0") || !strcasecmp(value, "off") ||
			 !strcasecmp(value, "false") || !strcasecmp(value, "no"));
}

static bool is_registration_forced(void)
{
	const char *value = secure_getenv("ROCPROFILER_REGISTER_FORCE_LOAD");

	return value && *value && strcmp(value, "0") != 0 && strcasecmp(value, "off") != 0 &&
	       strcasecmp(value, "false") != 0 && strcasecmp(value, "no") != 0;
}

SDK_EXPORT enum registration_error_code
rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void), uint32_t version,
				       void **tables, uint64_t count,
				       struct library_registration_identifier *identifier)
{
	static const enum registration_error_code error_code_by_announce_result[] = {
		[SDK_RUNTIME_ANNOUNCE_PASSED_TO_TOOLS] = REGISTER_SUCCESS,
		[SDK_RUNTIME_ANNOUNCE_NO_TOOLS] = REGISTER_NO_TOOLS,
		[SDK_RUNTIME_ANNOUNCE_BY_CONFIGURING_TOOL] = REGISTER_DEADLOCK,
		[SDK_RUNTIME_ANNOUNCE_UNKNOWN_RUNTIME] = REGISTER_UNSUPPORTED_API,
		[SDK_RUNTIME_ANNOUNCE_NO_TABLES] = REGISTER_BAD_API_TABLE_LENGTH,
		[SDK_RUNTIME_ANNOUNCE_TOO_MANY_RUNTIMES] = REGISTER_EXCESS_API_INSTANCES,
	};
	uint64_t id = 0;
	enum sdk_runtime_announce_result result;

	(void)import;
	if (is_registration_disabled())
		return REGISTER_SUCCESS;
	result = sdk_runtime_announce(name, version, tables, count, !is_registration_forced(), &id);
	if (identifier && result <= SDK_RUNTIME_ANNOUNCE_BY_CONFIGURING_TOOL)
		identifier->handle = id;
	return error_code_by_announce_result[result];
}

SDK_EXPORT const char *rocprofiler_register_error_string(enum registration_error_code code)
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

	return (unsigned)code < ARRAY_SIZE(texts) ? texts[code] : "Unknown error";
}

SDK_EXPORT enum registration_error_code
rocprofiler_register_iterate_registration_info(registration_info_callback callback, void *data)
{
	const char *name;
	uint64_t version, count;

	for (unsigned i = 0; callback && sdk_runtime_query_by_number(i, &name, &version, &count);
	     i++) {
		struct library_registration_info info = {sizeof(info), name, (uint32_t)version,
							 count};

		if (callback(&info, data))
			break;
	}
	return REGISTER_SUCCESS;
}

SDK_EXPORT enum registration_error_code
rocprofiler_register_invoke_nonpropagated_registrations(void)
{
	rocprofiler_status_t status = sdk_register_tools_once(NULL);

	if (status == ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED)
		return REGISTER_DEADLOCK;
	if (status)
		return REGISTER_ROCPROFILER_ERROR;
	sdk_runtimes_pass_on_tables();
	return REGISTER_SUCCESS;
}

/* What has been passed on stays with its tools: there is only one who takes tables. */
SDK_EXPORT enum registration_error_code rocprofiler_register_invoke_all_registrations(void)
{
	return rocprofiler_register_invoke_nonpropagated_registrations();
}
