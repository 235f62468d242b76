/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Versions and statuses of rocpd.
 */
#include <rocprofiler-sdk-rocpd/rocpd.h>

#include <stddef.h>

static const struct {
	const char *name, *text;
} status_names_and_texts[ROCPD_STATUS_LAST] = {
#define STATUS_NAME_AND_TEXT_ROW(status, text)                                                     \
	[ROCPD_STATUS_##status] = {"ROCPD_STATUS_" #status, text}
	STATUS_NAME_AND_TEXT_ROW(SUCCESS, "Success"),
	STATUS_NAME_AND_TEXT_ROW(ERROR, "Something went wrong"),
	STATUS_NAME_AND_TEXT_ROW(ERROR_INVALID_ARGUMENT, "An argument is wrong"),
	STATUS_NAME_AND_TEXT_ROW(ERROR_SQL_ERROR, "The database says that something is wrong"),
	STATUS_NAME_AND_TEXT_ROW(ERROR_SQL_INVALID_ENGINE, "There is no such database engine"),
	STATUS_NAME_AND_TEXT_ROW(ERROR_SQL_INVALID_SCHEMA_KIND, "There is no such kind of schema"),
	STATUS_NAME_AND_TEXT_ROW(ERROR_SQL_SCHEMA_NOT_FOUND, "The schema is not there"),
	STATUS_NAME_AND_TEXT_ROW(ERROR_SQL_SCHEMA_PERMISSION_DENIED, "The schema may not be read"),
#undef STATUS_NAME_AND_TEXT_ROW
};

rocpd_status_t rocpd_get_version(uint32_t *major, uint32_t *minor, uint32_t *patch)
{
	if (major)
		*major = ROCPD_VERSION_MAJOR;
	if (minor)
		*minor = ROCPD_VERSION_MINOR;
	if (patch)
		*patch = ROCPD_VERSION_PATCH;
	return ROCPD_STATUS_SUCCESS;
}

rocpd_status_t rocpd_get_version_triplet(rocpd_version_triplet_t *info)
{
	if (!info)
		return ROCPD_STATUS_ERROR_INVALID_ARGUMENT;
	return rocpd_get_version(&info->major, &info->minor, &info->patch);
}

const char *rocpd_get_status_name(rocpd_status_t status)
{
	return (unsigned)status < ROCPD_STATUS_LAST ? status_names_and_texts[status].name : NULL;
}

const char *rocpd_get_status_string(rocpd_status_t status)
{
	return (unsigned)status < ROCPD_STATUS_LAST ? status_names_and_texts[status].text : NULL;
}
