/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See program_end.h. The array usually lies in what the loader has made read-only after relocation
 * (PT_GNU_RELRO): its page is writable for one store.
 */
#include "libkymo-sdk/runtimes/program_end.h"

#include <link.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void (*end_function)(void);

struct program_end_array {
	uintptr_t last_entry;                     /* 0: there is none */
	uintptr_t read_only_begin, read_only_end; /* whole pages */
};

static end_function function_to_call_first, replaced_end_function;

static void call_first_and_replaced_function(void)
{
	function_to_call_first();
	replaced_end_function();
}

static uintptr_t find_last_end_function(const struct dl_phdr_info *object, uintptr_t dynamic)
{
	const ElfW(Dyn) *entry = (const ElfW(Dyn) *)dynamic; // NOLINT: an address of the loader's
	uintptr_t array = 0, bytes = 0;

	for (; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_FINI_ARRAY)
			array = object->dlpi_addr + entry->d_un.d_ptr;
		else if (entry->d_tag == DT_FINI_ARRAYSZ)
			bytes = entry->d_un.d_val;
	}
	return array && bytes >= sizeof(end_function) ? array + bytes - sizeof(end_function) : 0;
}

static bool is_writable_data_of_object(const struct dl_phdr_info *object, uintptr_t address)
{
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_LOAD && (header->p_flags & PF_W) && address >= begin &&
		    address + sizeof(end_function) <= begin + header->p_memsz)
			return true;
	}
	return false;
}

/* The program is the one that has no name. */
static int find_end_array_of_program(struct dl_phdr_info *object, size_t size, void *found)
{
	struct program_end_array *array = found;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), last = 0;

	(void)size;
	if (object->dlpi_name && *object->dlpi_name)
		return 1;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t begin = object->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_DYNAMIC) {
			last = find_last_end_function(object, begin);
		} else if (header->p_type == PT_GNU_RELRO) {
			array->read_only_begin = begin & ~(page - 1);
			array->read_only_end = (begin + header->p_memsz) & ~(page - 1);
		}
	}
	if (last && is_writable_data_of_object(object, last))
		array->last_entry = last;
	return 1;
}

static bool replace_end_function(const struct program_end_array *array)
{
	end_function *entry =
		(end_function *)array->last_entry; // NOLINT: an address of the loader's
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *first_page = (void *)(array->last_entry & ~(page - 1)); // NOLINT: as well
	bool is_read_only = array->last_entry >= array->read_only_begin &&
			    array->last_entry < array->read_only_end;

	if (is_read_only && mprotect(first_page, page, PROT_READ | PROT_WRITE))
		return false;
	replaced_end_function = *entry;
	__atomic_store_n(entry, call_first_and_replaced_function, __ATOMIC_RELEASE);
	if (is_read_only)
		mprotect(first_page, page, PROT_READ);
	return true;
}

bool sdk_call_before_libraries_end(void (*function)(void))
{
	struct program_end_array array = {0};

	dl_iterate_phdr(find_end_array_of_program, &array);
	if (!array.last_entry)
		return false;
	function_to_call_first = function;
	return replace_end_function(&array);
}
