/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * device_counting_service.h was called this up to 0.4.
 */
#ifndef ROCPROFILER_SDK_AGENT_PROFILE_H
#define ROCPROFILER_SDK_AGENT_PROFILE_H

#include <rocprofiler-sdk/deprecated/counting_services.h>
#include <rocprofiler-sdk/deprecated/profile_config.h>
#include <rocprofiler-sdk/device_counting_service.h>

#endif
