/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Taking version numbers apart.
 */
#ifndef ROCPROFILER_SDK_CXX_VERSION_HPP
#define ROCPROFILER_SDK_CXX_VERSION_HPP

#include <rocprofiler-sdk/fwd.h>

#include <cstdint>

namespace rocprofiler
{
namespace sdk
{
namespace version
{
template <uint64_t FactorV = 100>
constexpr rocprofiler_version_triplet_t compute_version_triplet(uint64_t version)
{
	return rocprofiler_version_triplet_t{static_cast<uint32_t>(version / (FactorV * FactorV)),
					     static_cast<uint32_t>(version / FactorV % FactorV),
					     static_cast<uint32_t>(version % FactorV)};
}
} // namespace version
} // namespace sdk
} // namespace rocprofiler

#endif
