/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See module.h.
 */
#include "binary/causal/module.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "binary/debugfile.h"
#include "common/array.h"

static int find_debug_info_files(struct causal_module *module, const char *debug_path)
{
	int error = debugfile_find(module->file, debug_path, &module->debug);

	if (error == -ENOMEM)
		return error;
	if (error)
		module->debug = NULL;
	if (dwarf_file_has_debug_info(module->file))
		module->debug_info_file = module->file;
	else if (module->debug && dwarf_file_has_debug_info(module->debug))
		module->debug_info_file = module->debug;
	if (module->debug_info_file &&
	    debugfile_find_dwz_shared(module->debug_info_file, debug_path, &module->shared))
		module->shared = NULL;
	return 0;
}

static int read_module_symbols(struct causal_module *module)
{
	int error = symbols_create(&module->symbols);

	if (!error)
		error = symbols_add_file(module->symbols, module->file);
	if (!error && module->debug)
		error = symbols_add_file(module->symbols, module->debug);
	return error ? error : symbols_sort_and_flatten(module->symbols);
}

static void compute_code_address_span(struct causal_module *module)
{
	module->low = UINT64_MAX;
	for (size_t i = 0; i < module->file->segment_count; i++) {
		const Elf64_Phdr *segment = &module->file->segments[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    segment->p_vaddr > UINT64_MAX - segment->p_filesz)
			continue;
		if (segment->p_vaddr < module->low)
			module->low = segment->p_vaddr;
		if (segment->p_vaddr + segment->p_filesz > module->high)
			module->high = segment->p_vaddr + segment->p_filesz;
	}
}

int causal_module_open(struct causal_module *ret, const char *path, const char *shown,
		       const char *debug_path, struct problem *problem)
{
	const char *slash = strrchr(shown, '/');
	int error;

	*ret = (struct causal_module){.path = shown, .name = slash ? slash + 1 : shown};
	error = elf_open(path, &ret->file, problem);
	if (error)
		return error;
	compute_code_address_span(ret);
	error = string_pool_create(&ret->string_pool);
	if (!error)
		error = find_debug_info_files(ret, debug_path);
	if (!error)
		error = read_module_symbols(ret);
	if (!error && eh_frame_table_read(ret->file, &ret->frames) == -ENOMEM)
		error = -ENOMEM;
	if (!error && ret->low >= ret->high)
		error = -ENOEXEC;
	if (error) {
		causal_module_close(ret);
		return problem_set(problem, error, "cannot read '%s': %s", shown,
				   error == -ENOEXEC ? "it has no code" : strerror(-error));
	}
	return 0;
}

void causal_module_close(struct causal_module *module)
{
	eh_frame_table_deinit(&module->frames);
	symbols_destroy(module->symbols);
	string_pool_destroy(module->string_pool);
	elf_close(module->shared);
	elf_close(module->debug);
	elf_close(module->file);
	*module = (struct causal_module){0};
}

bool causal_module_has_code_at(const struct causal_module *module, uint64_t vaddr)
{
	for (size_t i = 0; i < module->file->segment_count; i++) {
		const Elf64_Phdr *segment = &module->file->segments[i];

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) &&
		    vaddr >= segment->p_vaddr && vaddr - segment->p_vaddr < segment->p_filesz)
			return true;
	}
	return false;
}

/* Where what a compiler added begins: GCC and LLVM write .cold, .part.3, .isra.0, .constprop.0,
 * .lto_priv.0, .llvm.1234, in any order. Other dots are the name's own. */
static size_t get_symbol_length_without_suffixes(const char *name)
{
	static const char *const added[] = {".cold",      ".part",     ".isra",
					    ".constprop", ".lto_priv", ".llvm"};
	size_t length = strlen(name);

	for (const char *at = name + 1; (at = strchr(at, '.')); at++) {
		for (size_t i = 0; i < ARRAY_SIZE(added); i++) {
			size_t size = strlen(added[i]);

			if (!strncmp(at, added[i], size) && (!at[size] || at[size] == '.'))
				return (size_t)(at - name);
		}
	}
	return length;
}

static const struct eh_frame_fde *find_unwind_entry_at(const struct causal_module *module,
						       uint64_t vaddr)
{
	const struct eh_frame_table *frames = &module->frames;
	size_t low = 0, high = frames->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (frames->list[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || vaddr - frames->list[low - 1].vaddr >= frames->list[low - 1].size)
		return NULL;
	return &frames->list[low - 1];
}

const char *causal_module_get_symbol_name_at(struct causal_module *module, uint64_t vaddr,
					     int *error)
{
	const struct symbol *symbol = symbols_find_at_address(module->symbols, vaddr);
	const struct eh_frame_fde *frame;
	char name[512], *text = name, *copy = NULL;
	const char *kept;

	if (symbol) {
		size_t length = get_symbol_length_without_suffixes(symbol->name),
		       all = strlen(symbol->name);

		if (all > 4 && !strcmp(symbol->name + all - 4, "@plt"))
			return NULL;
		copy = text = strndup(symbol->name, length);
	} else {
		frame = find_unwind_entry_at(module, vaddr);
		if (!frame)
			return NULL;
		snprintf(name, sizeof(name), "[%.400s+0x%" PRIx64 "]", module->name, frame->vaddr);
	}
	kept = text ? string_pool_intern(module->string_pool, text) : NULL;
	free(copy);
	if (!kept)
		*error = -ENOMEM;
	return kept;
}
