/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The version of roctx.
 */
#ifndef ROCPROFILER_SDK_ROCTX_VERSION_H
#define ROCPROFILER_SDK_ROCTX_VERSION_H

#define ROCTX_VERSION_MAJOR  1
#define ROCTX_VERSION_MINOR  0
#define ROCTX_VERSION_PATCH  0
#define ROCTX_SOVERSION      1
#define ROCTX_VERSION_STRING "1.0.0"
#define ROCTX_VERSION                                                                              \
	((10000 * ROCTX_VERSION_MAJOR) + (100 * ROCTX_VERSION_MINOR) + ROCTX_VERSION_PATCH)

#endif
