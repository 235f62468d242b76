/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a disassembler needs of AMD's code object manager, libamd_comgr. The library is looked for
 * when it is first needed, so that programs build and start where there is no ROCm; its header is
 * not needed. Numbers are those of amd_comgr.h 2.0.
 */
#ifndef ROCPROFILER_SDK_CXX_DETAILS_COMGR_HPP
#define ROCPROFILER_SDK_CXX_DETAILS_COMGR_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

namespace rocprofiler
{
namespace sdk
{
namespace codeobj
{
namespace comgr
{
/* The library's objects are one handle each. */
struct data_t {
	std::uint64_t handle;
};
struct info_t {
	std::uint64_t handle;
};
struct symbol_t {
	std::uint64_t handle;
};

using status_t = int;

enum : int {
	success = 0,
	error = 1,
	kind_executable = 8,
	symbol_is_function = 2,
	info_name_length = 0,
	info_name = 1,
	info_type = 2,
	info_size = 3,
	info_value = 5
};

/* Throws where there is no library, or one without these functions. */
class library
{
      public:
	static const library &get()
	{
		static const library the_one;
		return the_one;
	}

	status_t (*status_string)(status_t status, const char **text);
	status_t (*create_data)(int kind, data_t *data);
	status_t (*set_data)(data_t data, std::size_t size, const char *bytes);
	status_t (*release_data)(data_t data);
	status_t (*isa_name)(data_t data, std::size_t *size, char *name);
	status_t (*create_info)(const char *isa,
				std::uint64_t (*read)(std::uint64_t from, char *to,
						      std::uint64_t size, void *user),
				void (*print)(const char *instruction, void *user),
				void (*annotate)(std::uint64_t address, void *user), info_t *info);
	status_t (*destroy_info)(info_t info);
	status_t (*disassemble)(info_t info, std::uint64_t address, void *user,
				std::uint64_t *size);
	status_t (*iterate_symbols)(data_t data, status_t (*each)(symbol_t symbol, void *user),
				    void *user);
	status_t (*symbol_info)(symbol_t symbol, int what, void *value);

      private:
	library()
	{
		void *handle = open();

		find(handle, status_string, "amd_comgr_status_string");
		find(handle, create_data, "amd_comgr_create_data");
		find(handle, set_data, "amd_comgr_set_data");
		find(handle, release_data, "amd_comgr_release_data");
		find(handle, isa_name, "amd_comgr_get_data_isa_name");
		find(handle, create_info, "amd_comgr_create_disassembly_info");
		find(handle, destroy_info, "amd_comgr_destroy_disassembly_info");
		find(handle, disassemble, "amd_comgr_disassemble_instruction");
		find(handle, iterate_symbols, "amd_comgr_iterate_symbols");
		find(handle, symbol_info, "amd_comgr_symbol_get_info");
	}

	/* One that the program has linked comes first. It is never closed. */
	static void *open()
	{
		if (dlsym(RTLD_DEFAULT, "amd_comgr_create_disassembly_info") != nullptr)
			return RTLD_DEFAULT;
		for (const char *name : {"libamd_comgr.so.3", "libamd_comgr.so.2",
					 "libamd_comgr.so", "/opt/rocm/lib/libamd_comgr.so"}) {
			if (void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL))
				return handle;
		}
		throw std::runtime_error("there is no disassembler: libamd_comgr.so, which is part "
					 "of ROCm, was not found");
	}

	template <typename Function>
	static void find(void *handle, Function &function, const char *name)
	{
		void *address = dlsym(handle, name);

		if (address == nullptr)
			throw std::runtime_error(std::string("libamd_comgr.so has no ") + name);
		function = reinterpret_cast<Function>(address);
	}
};

inline void check(status_t status, const char *what)
{
	const char *reason = nullptr;

	if (status == success)
		return;
	library::get().status_string(status, &reason);
	throw std::runtime_error(std::string(what) + ": " +
				 (reason != nullptr ? reason : "unknown error"));
}
} // namespace comgr
} // namespace codeobj
} // namespace sdk
} // namespace rocprofiler

#endif
