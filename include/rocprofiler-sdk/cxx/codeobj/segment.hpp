/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which code object an address is in: a set of ranges of addresses that do not overlap.
 */
#ifndef ROCPROFILER_SDK_CXX_CODEOBJ_SEGMENT_HPP
#define ROCPROFILER_SDK_CXX_CODEOBJ_SEGMENT_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <set>

namespace rocprofiler
{
namespace sdk
{
namespace codeobj
{
namespace segment
{
using marker_id_t = std::size_t;

/* Ranges are equal where they overlap; one of no bytes is an address. */
struct address_range_t {
	std::uint64_t addr = 0;
	std::uint64_t size = 0;
	marker_id_t id = 0;

	bool inrange(std::uint64_t address) const
	{
		return address >= addr && address - addr < size;
	}
	bool operator==(const address_range_t &other) const
	{
		return inrange(other.addr) || other.inrange(addr);
	}
	bool operator<(const address_range_t &other) const
	{
		return addr < other.addr && !(*this == other);
	}
};

/* Remembers what was found last. Not for several threads at once. */
class CodeobjTableTranslator : public std::set<address_range_t>
{
      public:
	/* Throws std::exception where there is none. */
	address_range_t find_codeobj_in_range(std::uint64_t address)
	{
		if (!last.inrange(address)) {
			const auto found = find(address_range_t{address, 0, 0});

			if (found == end())
				throw std::exception();
			last = *found;
		}
		return last;
	}
	void clear_cache()
	{
		last = address_range_t{};
	}
	bool remove(const address_range_t &range)
	{
		clear_cache();
		return erase(range) > 0;
	}
	bool remove(std::uint64_t address)
	{
		return remove(address_range_t{address, 0, 0});
	}

      private:
	address_range_t last;
};
} // namespace segment
} // namespace codeobj
} // namespace sdk
} // namespace rocprofiler

#endif
