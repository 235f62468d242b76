/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instructions of code objects, through a stand-in for AMD's disassembler; or, with the argument
 * "none", where there is none. Prints what is wrong.
 */
#include <rocprofiler-sdk/cxx/codeobj/code_printing.hpp>

#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

namespace
{
namespace disassembly = rocprofiler::sdk::codeobj::disassembly;
int problems;

void is(const char *what, const std::string &got, const std::string &expected)
{
	if (got == expected)
		return;
	std::printf("%s: '%s', not '%s'\n", what, got.c_str(), expected.c_str());
	problems++;
}

template <typename Function> std::string thrown(Function function)
{
	try {
		function();
	} catch (const std::exception &exception) {
		return exception.what();
	}
	return "nothing";
}

/* One segment of three instructions, of which the last fails, that is loaded at 0x1000. */
std::vector<char> code_object()
{
	std::vector<char> bytes(512);
	Elf64_Ehdr header = {};
	Elf64_Phdr segment = {};

	std::memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	header.e_ident[EI_DATA] = ELFDATA2LSB;
	header.e_type = ET_DYN;
	header.e_phoff = sizeof(header);
	header.e_phnum = 1;
	segment.p_type = PT_LOAD;
	segment.p_offset = 256;
	segment.p_vaddr = 0x1000;
	segment.p_filesz = 12;
	segment.p_memsz = 0x1000;
	std::memcpy(bytes.data(), &header, sizeof(header));
	std::memcpy(bytes.data() + sizeof(header), &segment, sizeof(segment));
	bytes[256] = 7;
	bytes[260] = 8;
	bytes[264] = static_cast<char>(0xff);
	return bytes;
}

void one_object()
{
	const auto bytes = code_object();
	disassembly::CodeobjAddressTranslate all;
	std::unique_ptr<disassembly::Instruction> instruction;

	all.addDecoder(bytes.data(), bytes.size(), 5, 0x40000, 0x2000);
	instruction = all.get(0x41004);
	is("text", instruction->inst, "op8");
	is("bytes", std::to_string(instruction->size), "4");
	is("in the file", std::to_string(instruction->faddr), "260");
	is("loaded", std::to_string(instruction->ld_addr), std::to_string(0x41004));
	is("object", std::to_string(instruction->codeobj_id), "5");
	is("by id", all.get(5, 0x1000)->inst, "op7");
	is("by id 0", all.get(0, 0x41000)->inst, "op7");
	is("name", all.getSymbolName(0x41000), "a_kernel_with_a_name_of_more_than_16");
	is("no name", all.getSymbolName(0x41004) == nullptr ? "none" : "one", "none");
	is("functions", std::to_string(all.getSymbolMap().size()), "1");
	is("its address", std::to_string(all.getSymbolMap().begin()->first),
	   std::to_string(0x41000));
	is("it fails", thrown([&] { all.get(0x41008); }), "disassemble_instruction: it failed");
	is("not in the file", all.get(0x4100c) == nullptr ? "none" : "one", "none");
	is("unknown id", all.get(6, 0x1000) == nullptr ? "none" : "one", "none");
	is("no object", thrown([&] { all.get(0x50000); }) == "nothing" ? "found" : "thrown",
	   "thrown");
	is("removed", all.removeDecoder(5, 0x40000) ? "yes" : "no", "yes");
	is("gone", all.get(5, 0x1000) == nullptr ? "none" : "one", "none");
}

/* Wherever the bytes end, whatever the numbers in them are. */
void broken_objects()
{
	auto bytes = code_object();
	Elf64_Ehdr header;

	for (std::size_t size = 1; size < bytes.size(); size++) {
		const std::vector<char> some(bytes.data(), bytes.data() + size);
		disassembly::DisassemblyInstance instance(some.data(), some.size());
		const auto offset = instance.va2fo(0x1008);

		is("cut off", offset && *offset >= size ? "behind its end" : "", "");
		is("behind its end", thrown([&] { instance.ReadInstruction(size); }),
		   "behind the end of the code object");
	}
	std::memcpy(&header, bytes.data(), sizeof(header));
	header.e_phoff = ~0ull;
	header.e_phnum = 0xffff;
	std::memcpy(bytes.data(), &header, sizeof(header));
	is("headers nowhere",
	   disassembly::DisassemblyInstance(bytes.data(), bytes.size()).va2fo(0x1000) ? "found"
										      : "none",
	   "none");
}

void of_files()
{
	const auto bytes = code_object();
	char path[] = "/tmp/kymo-code-XXXXXX";
	const int file = mkstemp(path);
	std::string uri = std::string("FILE:///%74mp") + (path + 4);

	is("written", std::to_string(write(file, bytes.data(), bytes.size())), "512");
	close(file);
	is("whole", std::to_string(disassembly::CodeObjectBinary(path).buffer.size()), "512");
	is("decoded", std::to_string(disassembly::CodeObjectBinary(uri).buffer.size()), "512");
	uri += "#offset=0x100&size=4";
	is("part", std::string(1, '0' + disassembly::CodeObjectBinary(uri).buffer[0]), "7");
	is("part's size", std::to_string(disassembly::CodeObjectBinary(uri).buffer.size()), "4");
	is("too much", thrown([&] { disassembly::CodeObjectBinary{uri + "000"}; }),
	   std::string(path) + " ends before " + uri + "000");
	is("other scheme", thrown([&] { disassembly::CodeObjectBinary{"memory://1"}; }),
	   "code objects cannot be read from memory://1");
	unlink(path);
	is("no file", thrown([&] { disassembly::CodeObjectBinary{path}; }),
	   std::string("cannot open ") + path);
}

void none()
{
	const auto bytes = code_object();
	disassembly::CodeobjMap all;
	const auto add = [&] { all.addDecoder(bytes.data(), bytes.size(), 1, 0, 0x2000); };

	is("without a library", thrown(add).substr(0, 24), "there is no disassembler");
	is("once more", thrown(add).substr(0, 24), "there is no disassembler");
}
} // namespace

int main(int, char **arguments)
{
	if (arguments[1] != nullptr && !std::strcmp(arguments[1], "none")) {
		none();
		return problems != 0;
	}
	one_object();
	broken_objects();
	of_files();
	if (void *library = dlopen("libamd_comgr.so.3", RTLD_NOW | RTLD_NOLOAD)) {
		const auto left =
			reinterpret_cast<unsigned (*)()>(dlsym(library, "fake_comgr_open"));

		is("left open", std::to_string(left()), "0");
	}
	return problems != 0;
}
