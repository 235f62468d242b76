/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instructions of loaded code objects by address, each with its source line where the object has
 * them. Not for several threads at once. Without libamd_comgr, adding a code object throws.
 */
#ifndef ROCPROFILER_SDK_CXX_CODEOBJ_CODE_PRINTING_HPP
#define ROCPROFILER_SDK_CXX_CODEOBJ_CODE_PRINTING_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rocprofiler-sdk/cxx/codeobj/disassembly.hpp>
#include <rocprofiler-sdk/cxx/codeobj/segment.hpp>
#include <rocprofiler-sdk/cxx/details/code_lines.hpp>

namespace rocprofiler
{
namespace sdk
{
namespace codeobj
{
namespace disassembly
{
using marker_id_t = segment::marker_id_t;

struct Instruction {
	Instruction() = default;
	Instruction(std::string &&text, std::size_t bytes) : inst(std::move(text)), size(bytes)
	{
	}
	std::string inst;
	std::string comment; /* source lines */
	std::uint64_t faddr = 0;
	std::uint64_t vaddr = 0;
	std::size_t size = 0;
	std::uint64_t ld_addr = 0;  /* where it is loaded */
	marker_id_t codeobj_id = 0; /* of the code object, where it was asked for by that */
};

/* A code object, wherever it is loaded. */
class CodeobjDecoderComponent
{
      public:
	CodeobjDecoderComponent(const char *codeobj_data, std::uint64_t codeobj_size)
	    : disassembly(std::make_unique<DisassemblyInstance>(codeobj_data, codeobj_size))
	{
		const auto all = lines::read(codeobj_data, codeobj_size);

		for (auto line = all.begin(); line != all.end(); ++line) {
			const auto next = std::next(line);
			const std::uint64_t end = next != all.end()            ? next->first
						  : line->first < codeobj_size ? codeobj_size
									       : line->first + 1;

			m_line_number_map.emplace(
				segment::address_range_t{line->first, end - line->first, 0},
				line->second);
		}
		try {
			m_symbol_map = disassembly->GetKernelMap();
		} catch (const std::runtime_error &) {
			m_symbol_map.clear(); /* instructions can be told without names */
		}
	}

	std::optional<std::uint64_t> va2fo(std::uint64_t vaddr) const
	{
		return disassembly->va2fo(vaddr);
	}

	std::unique_ptr<Instruction> disassemble_instruction(std::uint64_t faddr,
							     std::uint64_t vaddr)
	{
		auto read = disassembly->ReadInstruction(faddr);
		auto result = std::make_unique<Instruction>(std::move(read.first), read.second);
		const auto line = m_line_number_map.find(segment::address_range_t{vaddr, 0, 0});

		result->faddr = faddr;
		result->vaddr = vaddr;
		if (line != m_line_number_map.end())
			result->comment = line->second;
		return result;
	}

	std::map<std::uint64_t, SymbolInfo> m_symbol_map;
	std::vector<std::shared_ptr<Instruction>> instructions;
	std::unique_ptr<DisassemblyInstance> disassembly;
	std::map<segment::address_range_t, std::string> m_line_number_map;
};

/* A code object at the place where it is loaded. */
class LoadedCodeobjDecoder
{
      public:
	/* A file, or the URI of a code object. */
	LoadedCodeobjDecoder(const char *filepath, std::uint64_t begin_address,
			     std::uint64_t memsize)
	    : load_addr(begin_address), load_end(begin_address + memsize)
	{
		if (filepath == nullptr)
			throw std::runtime_error("no file of a code object");
		const CodeObjectBinary binary(filepath);

		decoder = std::make_unique<CodeobjDecoderComponent>(binary.buffer.data(),
								    binary.buffer.size());
	}
	LoadedCodeobjDecoder(const void *data, std::uint64_t size, std::uint64_t begin_address,
			     std::size_t memsize)
	    : load_addr(begin_address), load_end(begin_address + memsize),
	      decoder(std::make_unique<CodeobjDecoderComponent>(static_cast<const char *>(data),
								size))
	{
	}

	/* NULL: there is none. */
	std::unique_ptr<Instruction> get(std::uint64_t ld_addr)
	{
		const auto offset =
			ld_addr < load_addr ? std::nullopt : decoder->va2fo(ld_addr - load_addr);
		std::unique_ptr<Instruction> result;

		if (!offset)
			return nullptr;
		result = decoder->disassemble_instruction(*offset, ld_addr - load_addr);
		if (result->size == 0)
			return nullptr;
		result->ld_addr = ld_addr;
		return result;
	}

	std::uint64_t begin() const
	{
		return load_addr;
	}
	std::uint64_t end() const
	{
		return load_end;
	}
	std::uint64_t size() const
	{
		return load_end - load_addr;
	}
	bool inrange(std::uint64_t address) const
	{
		return address >= begin() && address < end();
	}

	/* Of the function that begins there, or NULL. */
	const char *getSymbolName(std::uint64_t address) const
	{
		const auto found = decoder->m_symbol_map.find(address - load_addr);

		return found != decoder->m_symbol_map.end() ? found->second.name.c_str() : nullptr;
	}

	std::map<std::uint64_t, SymbolInfo> &getSymbolMap() const
	{
		return decoder->m_symbol_map;
	}

	const std::uint64_t load_addr;

      private:
	std::uint64_t load_end = 0;
	std::unique_ptr<CodeobjDecoderComponent> decoder;
};

/* Code objects by their ids. */
class CodeobjMap
{
      public:
	CodeobjMap() = default;
	virtual ~CodeobjMap() = default;

	virtual void addDecoder(const char *filepath, marker_id_t id, std::uint64_t load_addr,
				std::uint64_t memsize)
	{
		decoders[id] = std::make_shared<LoadedCodeobjDecoder>(filepath, load_addr, memsize);
	}
	virtual void addDecoder(const void *data, std::size_t memory_size, marker_id_t id,
				std::uint64_t load_addr, std::uint64_t memsize)
	{
		decoders[id] = std::make_shared<LoadedCodeobjDecoder>(data, memory_size, load_addr,
								      memsize);
	}
	virtual bool removeDecoderbyId(marker_id_t id)
	{
		return decoders.erase(id) != 0;
	}

	std::unique_ptr<Instruction> get(marker_id_t id, std::uint64_t offset)
	{
		const auto found = decoders.find(id);
		std::unique_ptr<Instruction> result;

		if (found == decoders.end())
			return nullptr;
		result = found->second->get(found->second->begin() + offset);
		if (result != nullptr)
			result->codeobj_id = id;
		return result;
	}

	const char *getSymbolName(marker_id_t id, std::uint64_t offset)
	{
		const auto found = decoders.find(id);

		if (found == decoders.end() || offset >= found->second->size())
			return nullptr;
		return found->second->getSymbolName(found->second->begin() + offset);
	}

      protected:
	std::unordered_map<marker_id_t, std::shared_ptr<LoadedCodeobjDecoder>> decoders;
};

/* The same, and by addresses. */
class CodeobjAddressTranslate : public CodeobjMap
{
      public:
	void addDecoder(const char *filepath, marker_id_t id, std::uint64_t load_addr,
			std::uint64_t memsize) override
	{
		CodeobjMap::addDecoder(filepath, id, load_addr, memsize);
		table.insert({load_addr, memsize, id});
	}
	void addDecoder(const void *data, std::size_t memory_size, marker_id_t id,
			std::uint64_t load_addr, std::uint64_t memsize) override
	{
		CodeobjMap::addDecoder(data, memory_size, id, load_addr, memsize);
		table.insert({load_addr, memsize, id});
	}
	virtual bool removeDecoder(marker_id_t id, std::uint64_t load_addr)
	{
		return table.remove(load_addr) && removeDecoderbyId(id);
	}

	/* Throws std::exception where no code object is. */
	std::unique_ptr<Instruction> get(std::uint64_t vaddr)
	{
		const auto range = table.find_codeobj_in_range(vaddr);

		return CodeobjMap::get(range.id, vaddr - range.addr);
	}
	/* id 0: `offset` is an address. */
	std::unique_ptr<Instruction> get(marker_id_t id, std::uint64_t offset)
	{
		return id == 0 ? get(offset) : CodeobjMap::get(id, offset);
	}

	const char *getSymbolName(std::uint64_t vaddr)
	{
		for (const auto &one : decoders) {
			if (one.second->inrange(vaddr))
				return one.second->getSymbolName(vaddr);
		}
		return nullptr;
	}

	/* All functions, by the addresses where they are loaded. */
	std::map<std::uint64_t, SymbolInfo> getSymbolMap() const
	{
		std::map<std::uint64_t, SymbolInfo> all;

		for (const auto &one : decoders) {
			for (const auto &symbol : one.second->getSymbolMap())
				all[symbol.first + one.second->load_addr] = symbol.second;
		}
		return all;
	}
	std::map<std::uint64_t, SymbolInfo> getSymbolMap(marker_id_t id) const
	{
		const auto found = decoders.find(id);

		return found != decoders.end() ? found->second->getSymbolMap()
					       : std::map<std::uint64_t, SymbolInfo>{};
	}

      private:
	segment::CodeobjTableTranslator table;
};
} // namespace disassembly
} // namespace codeobj
} // namespace sdk
} // namespace rocprofiler

#endif
