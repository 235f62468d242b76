/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Numbers and addresses in hexadecimal.
 */
#ifndef ROCPROFILER_SDK_CXX_UTILITY_HPP
#define ROCPROFILER_SDK_CXX_UTILITY_HPP

#include <cstdint>
#include <iomanip>
#include <sstream>
#include <string>
#include <type_traits>

namespace rocprofiler
{
namespace sdk
{
namespace utility
{
template <typename Tp> std::string as_hex(Tp val, size_t width = 0)
{
	std::stringstream text;
	uintptr_t number = 0;

	if constexpr (std::is_pointer<Tp>::value)
		number = reinterpret_cast<uintptr_t>(val);
	else
		number = static_cast<uintptr_t>(val);
	text << "0x" << std::hex << std::setfill('0') << std::setw(static_cast<int>(width))
	     << number;
	return text.str();
}
} // namespace utility
} // namespace sdk
} // namespace rocprofiler

#endif
