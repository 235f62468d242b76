/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * counter_config.h was called this up to 0.6.
 */
#ifndef ROCPROFILER_SDK_PROFILE_CONFIG_H
#define ROCPROFILER_SDK_PROFILE_CONFIG_H

#include <rocprofiler-sdk/counter_config.h>
#include <rocprofiler-sdk/deprecated/profile_config.h>

#endif
