/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The version of rocpd.
 */
#ifndef ROCPROFILER_SDK_ROCPD_VERSION_H
#define ROCPROFILER_SDK_ROCPD_VERSION_H

#define ROCPD_VERSION_MAJOR  1
#define ROCPD_VERSION_MINOR  0
#define ROCPD_VERSION_PATCH  0
#define ROCPD_SOVERSION      1
#define ROCPD_VERSION_STRING "1.0.0"
#define ROCPD_VERSION                                                                              \
	((10000 * ROCPD_VERSION_MAJOR) + (100 * ROCPD_VERSION_MINOR) + ROCPD_VERSION_PATCH)

#endif
