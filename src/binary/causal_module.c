/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See causal_module.h.
 */
#include "binary/causal_module.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "binary/debugfile.h"

static int module_find_debug(struct causal_module *module, const char *debug_path)
{
	int error = debugfile_find(module->file, debug_path, &module->debug);

	if (error == -ENOMEM)
		return error;
	if (error)
		module->debug = NULL;
	if (dwarf_present(module->file))
		module->speaking = module->file;
	else if (module->debug && dwarf_present(module->debug))
		module->speaking = module->debug;
	if (module->speaking &&
	    debugfile_find_shared(module->speaking, debug_path, &module->shared))
		module->shared = NULL;
	return 0;
}

static int module_read_symbols(struct causal_module *module)
{
	int error = symbols_create(&module->symbols);

	if (!error)
		error = symbols_add(module->symbols, module->file);
	if (!error && module->debug)
		error = symbols_add(module->symbols, module->debug);
	return error ? error : symbols_finish(module->symbols);
}

static void module_find_code(struct causal_module *module)
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
	module_find_code(ret);
	error = string_pool_create(&ret->pool);
	if (!error)
		error = module_find_debug(ret, debug_path);
	if (!error)
		error = module_read_symbols(ret);
	if (!error && frames_read(ret->file, &ret->frames) == -ENOMEM)
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
	frames_deinit(&module->frames);
	symbols_destroy(module->symbols);
	string_pool_destroy(module->pool);
	elf_close(module->shared);
	elf_close(module->debug);
	elf_close(module->file);
	*module = (struct causal_module){0};
}

bool causal_module_is_code(const struct causal_module *module, uint64_t vaddr)
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
static size_t symbol_own_length(const char *name)
{
	static const char *const added[] = {".cold",      ".part",     ".isra",
					    ".constprop", ".lto_priv", ".llvm"};
	size_t length = strlen(name);

	for (const char *at = name + 1; (at = strchr(at, '.')); at++) {
		for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++) {
			size_t size = strlen(added[i]);

			if (!strncmp(at, added[i], size) && (!at[size] || at[size] == '.'))
				return (size_t)(at - name);
		}
	}
	return length;
}

static const struct frame *module_frame(const struct causal_module *module, uint64_t vaddr)
{
	const struct frames *frames = &module->frames;
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

const char *causal_module_symbol(struct causal_module *module, uint64_t vaddr, int *error)
{
	const struct symbol *symbol = symbols_find(module->symbols, vaddr);
	const struct frame *frame;
	char name[512], *text = name, *copy = NULL;
	const char *kept;

	if (symbol) {
		size_t length = symbol_own_length(symbol->name), all = strlen(symbol->name);

		if (all > 4 && !strcmp(symbol->name + all - 4, "@plt"))
			return NULL;
		copy = text = strndup(symbol->name, length);
	} else {
		frame = module_frame(module, vaddr);
		if (!frame)
			return NULL;
		snprintf(name, sizeof(name), "[%.400s+0x%" PRIx64 "]", module->name, frame->vaddr);
	}
	kept = text ? string_pool_intern(module->pool, text) : NULL;
	free(copy);
	if (!kept)
		*error = -ENOMEM;
	return kept;
}
