/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source lines of a code object's addresses, by elfutils' libdw where it is installed: it is looked
 * for when it is first needed, and without it there are no lines.
 */
#ifndef ROCPROFILER_SDK_CXX_DETAILS_CODE_LINES_HPP
#define ROCPROFILER_SDK_CXX_DETAILS_CODE_LINES_HPP

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include <dlfcn.h>

namespace rocprofiler
{
namespace sdk
{
namespace codeobj
{
namespace lines
{
/* Functions of libdw.h; all of its objects are reached by pointers but Dwarf_Die. */
class library
{
      public:
	struct die {
		void *words[4];
	};

	static const library &get()
	{
		static const library the_one;
		return the_one;
	}

	bool is_there = false;
	void *(*begin)(int file, int command);
	int (*end)(void *dwarf);
	int (*next_unit)(void *dwarf, std::uint64_t offset, std::uint64_t *next,
			 std::size_t *header_size, std::uint64_t *abbreviations,
			 std::uint8_t *address_size, std::uint8_t *offset_size);
	die *(*die_at)(void *dwarf, std::uint64_t offset, die *result);
	int (*source_lines)(die *unit, void **lines, std::size_t *count);
	void *(*line_at)(void *lines, std::size_t number);
	int (*line_address)(void *line, std::uint64_t *address);
	int (*line_number)(void *line, int *number);
	const char *(*line_source)(void *line, std::uint64_t *time, std::uint64_t *length);

      private:
	library()
	{
		void *handle = dlopen("libdw.so.1", RTLD_LAZY | RTLD_LOCAL);

		is_there = handle != nullptr && find(handle, begin, "dwarf_begin") &&
			   find(handle, end, "dwarf_end") &&
			   find(handle, next_unit, "dwarf_nextcu") &&
			   find(handle, die_at, "dwarf_offdie") &&
			   find(handle, source_lines, "dwarf_getsrclines") &&
			   find(handle, line_at, "dwarf_onesrcline") &&
			   find(handle, line_address, "dwarf_lineaddr") &&
			   find(handle, line_number, "dwarf_lineno") &&
			   find(handle, line_source, "dwarf_linesrc");
	}

	template <typename Function>
	static bool find(void *handle, Function &function, const char *name)
	{
		function = reinterpret_cast<Function>(dlsym(handle, name));
		return function != nullptr;
	}
};

inline void read_unit(const library &dw, void *lines, std::size_t count,
		      std::map<std::uint64_t, std::string> &found)
{
	for (std::size_t i = 0; i < count; i++) {
		void *line = dw.line_at(lines, i);
		std::uint64_t address = 0;
		int number = 0;
		const char *source;

		if (line == nullptr || dw.line_address(line, &address) != 0 ||
		    dw.line_number(line, &number) != 0 || number == 0)
			continue;
		source = dw.line_source(line, nullptr, nullptr);
		if (source == nullptr)
			continue;
		std::string &text = found[address];

		text += (text.empty() ? "" : " ") + std::string(source) + ':' +
			std::to_string(number);
	}
}

/* "file:line" by the address where the line begins; several, where code was inlined. */
inline std::map<std::uint64_t, std::string> read(const char *data, std::size_t size)
{
	const library &dw = library::get();
	std::map<std::uint64_t, std::string> found;
	std::FILE *file = dw.is_there ? std::tmpfile() : nullptr;
	void *dwarf = nullptr;
	std::uint64_t offset = 0, next = 0;
	std::size_t header_size = 0;

	if (file == nullptr)
		return found;
	if (std::fwrite(data, 1, size, file) == size && std::fflush(file) == 0)
		dwarf = dw.begin(fileno(file), 0);
	while (dwarf != nullptr &&
	       dw.next_unit(dwarf, offset, &next, &header_size, nullptr, nullptr, nullptr) == 0) {
		library::die unit;
		void *lines = nullptr;
		std::size_t count = 0;

		if (dw.die_at(dwarf, offset + header_size, &unit) != nullptr &&
		    dw.source_lines(&unit, &lines, &count) == 0)
			read_unit(dw, lines, count, found);
		offset = next;
	}
	if (dwarf != nullptr)
		dw.end(dwarf);
	std::fclose(file);
	return found;
}
} // namespace lines
} // namespace codeobj
} // namespace sdk
} // namespace rocprofiler

#endif
