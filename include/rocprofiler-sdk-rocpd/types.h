/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Statuses and versions of rocpd.
 */
#ifndef ROCPROFILER_SDK_ROCPD_TYPES_H
#define ROCPROFILER_SDK_ROCPD_TYPES_H

#include <stdint.h>

#include <rocprofiler-sdk-rocpd/defines.h>

typedef enum rocpd_status_t {
	ROCPD_STATUS_SUCCESS = 0,
	ROCPD_STATUS_ERROR,
	ROCPD_STATUS_ERROR_INVALID_ARGUMENT,
	ROCPD_STATUS_ERROR_SQL_ERROR,
	ROCPD_STATUS_ERROR_SQL_INVALID_ENGINE,
	ROCPD_STATUS_ERROR_SQL_INVALID_SCHEMA_KIND,
	ROCPD_STATUS_ERROR_SQL_SCHEMA_NOT_FOUND,
	ROCPD_STATUS_ERROR_SQL_SCHEMA_PERMISSION_DENIED,
	ROCPD_STATUS_LAST
} rocpd_status_t;

typedef struct rocpd_version_triplet_t {
	uint32_t major;
	uint32_t minor;
	uint32_t patch;
} rocpd_version_triplet_t;

#endif
