/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instructions and functions of AMD's code objects, by libamd_comgr, which is looked for at run
 * time: without it, DisassemblyInstance throws std::runtime_error. Of a code object nothing is
 * trusted.
 */
#ifndef ROCPROFILER_SDK_CXX_CODEOBJ_DISASSEMBLY_HPP
#define ROCPROFILER_SDK_CXX_CODEOBJ_DISASSEMBLY_HPP

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <elf.h>

#include <rocprofiler-sdk/cxx/details/comgr.hpp>

namespace rocprofiler
{
namespace sdk
{
namespace codeobj
{
namespace disassembly
{
/* The bytes that a URI of a code object means: file://PATH, with %XX for characters, and
 * #offset=N&size=N behind it, where it is a part of the file. */
class CodeObjectBinary
{
      public:
	CodeObjectBinary(const std::string &uri) : m_uri(uri)
	{
		const std::size_t scheme = uri.find("://");
		const std::size_t path = scheme == std::string::npos ? 0 : scheme + 3;
		const std::size_t end = std::min(uri.find_first_of("#?", path), uri.size());
		std::size_t offset = 0, size = 0;
		bool has_size = false;

		if (path != 0 && lower(uri.substr(0, scheme)) != "file")
			throw std::runtime_error("code objects cannot be read from " + uri);
		for (std::size_t at = end; at < uri.size();) {
			const std::size_t next = std::min(uri.find('&', at + 1), uri.size());

			parameter(uri.substr(at + 1, next - at - 1), "offset=", offset);
			has_size |= parameter(uri.substr(at + 1, next - at - 1), "size=", size);
			at = next;
		}
		if (!has_size || size != 0)
			read(decoded(uri.substr(path, end - path)), offset, size);
	}

	std::string m_uri;
	std::vector<char> buffer;

      private:
	static std::string lower(std::string text)
	{
		for (char &letter : text)
			letter =
				static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
		return text;
	}

	static bool parameter(const std::string &text, const char *name, std::size_t &value)
	{
		if (text.compare(0, std::strlen(name), name) != 0)
			return false;
		value = std::strtoull(text.c_str() + std::strlen(name), nullptr, 0);
		return true;
	}

	static std::string decoded(const std::string &path)
	{
		std::string result;

		for (std::size_t i = 0; i < path.size(); i++) {
			if (path[i] == '%' && i + 2 < path.size() && is_digit(path[i + 1]) &&
			    is_digit(path[i + 2])) {
				result += static_cast<char>(
					std::stoi(path.substr(i + 1, 2), nullptr, 16));
				i += 2;
			} else {
				result += path[i];
			}
		}
		return result;
	}

	static bool is_digit(char digit)
	{
		return std::isxdigit(static_cast<unsigned char>(digit)) != 0;
	}

	/* size 0: all that follows. */
	void read(const std::string &path, std::size_t offset, std::size_t size)
	{
		std::ifstream file(path, std::ios::in | std::ios::binary | std::ios::ate);
		const std::streamoff end = file ? static_cast<std::streamoff>(file.tellg()) : -1;
		const std::size_t there = end < 0 ? 0 : static_cast<std::size_t>(end);

		if (end < 0)
			throw std::runtime_error("cannot open " + path);
		if (offset > there || size > there - offset)
			throw std::runtime_error(path + " ends before " + m_uri);
		buffer.resize(size != 0 ? size : there - offset);
		file.seekg(static_cast<std::streamoff>(offset));
		if (!file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())))
			throw std::runtime_error("cannot read " + path);
	}
};

struct SymbolInfo {
	std::string name;
	std::uint64_t faddr = 0; /* in the file */
	std::uint64_t vaddr = 0; /* from the place where the object is loaded */
	std::uint64_t mem_size = 0;
};

class DisassemblyInstance
{
      public:
	DisassemblyInstance(const char *codeobj_data, std::uint64_t codeobj_size)
	    : buffer(codeobj_data, codeobj_data + codeobj_size)
	{
		std::size_t size = 0;
		std::string isa;

		comgr::check(lib.create_data(comgr::kind_executable, &data), "create_data");
		try {
			comgr::check(lib.set_data(data, buffer.size(), buffer.data()), "set_data");
			comgr::check(lib.isa_name(data, &size, nullptr), "get_data_isa_name");
			isa.resize(size + 1);
			comgr::check(lib.isa_name(data, &size, &isa[0]), "get_data_isa_name");
			comgr::check(lib.create_info(isa.c_str(), memory_callback, inst_callback,
						     address_callback, &info),
				     "create_disassembly_info");
		} catch (...) {
			lib.release_data(data);
			throw;
		}
	}
	~DisassemblyInstance()
	{
		lib.destroy_info(info);
		lib.release_data(data);
	}
	DisassemblyInstance(const DisassemblyInstance &) = delete;
	DisassemblyInstance &operator=(const DisassemblyInstance &) = delete;

	/* The instruction at a place of the file, and its bytes. */
	std::pair<std::string, std::size_t> ReadInstruction(std::uint64_t faddr)
	{
		std::uint64_t size = 0;

		if (faddr >= buffer.size())
			throw std::runtime_error("behind the end of the code object");
		last_instruction.clear();
		comgr::check(lib.disassemble(info, faddr, this, &size), "disassemble_instruction");
		return {std::move(last_instruction), static_cast<std::size_t>(size)};
	}

	std::map<std::uint64_t, SymbolInfo> &GetKernelMap()
	{
		symbol_map.clear();
		comgr::check(lib.iterate_symbols(data, symbol_callback, this), "iterate_symbols");
		return symbol_map;
	}

	/* Where in the file an address is. */
	std::optional<std::uint64_t> va2fo(std::uint64_t va) const
	{
		Elf64_Ehdr header;
		Elf64_Phdr segment;

		if (buffer.size() < sizeof(header))
			return std::nullopt;
		std::memcpy(&header, buffer.data(), sizeof(header));
		if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
		    header.e_ident[EI_CLASS] != ELFCLASS64 ||
		    header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_DYN)
			return std::nullopt;
		for (std::uint64_t i = 0; i < header.e_phnum; i++) {
			const std::uint64_t at = i * sizeof(segment);

			if (header.e_phoff > buffer.size() ||
			    buffer.size() - header.e_phoff < at + sizeof(segment))
				break;
			std::memcpy(&segment, buffer.data() + header.e_phoff + at, sizeof(segment));
			if (segment.p_type == PT_LOAD && va >= segment.p_vaddr &&
			    va - segment.p_vaddr < segment.p_filesz &&
			    segment.p_offset <= buffer.size() &&
			    va - segment.p_vaddr < buffer.size() - segment.p_offset)
				return va - segment.p_vaddr + segment.p_offset;
		}
		return std::nullopt;
	}

	std::vector<char> buffer;
	std::string last_instruction;
	comgr::info_t info = {0};
	comgr::data_t data = {0};
	std::map<std::uint64_t, SymbolInfo> symbol_map;

      private:
	const comgr::library &lib = comgr::library::get();

	static comgr::status_t symbol_callback(comgr::symbol_t symbol, void *user)
	{
		auto &self = *static_cast<DisassemblyInstance *>(user);
		const comgr::library &lib = self.lib;
		int type = 0;
		std::uint64_t address = 0, size = 0, length = 0;
		std::string name;

		if (lib.symbol_info(symbol, comgr::info_type, &type) != comgr::success)
			return comgr::error;
		if (type != comgr::symbol_is_function)
			return comgr::success;
		if (lib.symbol_info(symbol, comgr::info_value, &address) != comgr::success ||
		    lib.symbol_info(symbol, comgr::info_size, &size) != comgr::success ||
		    lib.symbol_info(symbol, comgr::info_name_length, &length) != comgr::success)
			return comgr::error;
		name.resize(length + 1); /* a zero is written behind it */
		if (lib.symbol_info(symbol, comgr::info_name, &name[0]) != comgr::success)
			return comgr::error;
		name.resize(length);
		if (const auto offset = self.va2fo(address))
			self.symbol_map[address] = SymbolInfo{name, *offset, address, size};
		return comgr::success;
	}

	static std::uint64_t memory_callback(std::uint64_t from, char *to, std::uint64_t size,
					     void *user)
	{
		const auto &buffer = static_cast<DisassemblyInstance *>(user)->buffer;

		if (from >= buffer.size())
			return 0;
		size = std::min<std::uint64_t>(size, buffer.size() - from);
		std::memcpy(to, buffer.data() + from, size);
		return size;
	}

	static void inst_callback(const char *instruction, void *user)
	{
		if (instruction == nullptr)
			return;
		static_cast<DisassemblyInstance *>(user)->last_instruction =
			instruction + std::strspn(instruction, "\t ");
	}

	static void address_callback(std::uint64_t, void *)
	{
	}
};
} // namespace disassembly
} // namespace codeobj
} // namespace sdk
} // namespace rocprofiler

#endif
