/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The files that speak about one module: itself, checked to be the one that ran, and where its
 * debug information was split off.
 */
#include <errno.h>
#include <string.h>

#include "analysis/symbolize_internal.h"
#include "analysis/symbolize_vdso.h"
#include "binary/debugfile.h"
#include "binary/dwarf.h"

void symbolize_files_close(struct symbolize_files *files)
{
	elf_close(files->file);
	elf_close(files->debug);
	elf_close(files->shared);
	*files = (struct symbolize_files){0};
}

static bool build_id_differs(const struct symbolize_request *request, const struct elf_file *file)
{
	return request->build_id_size > 0 &&
	       (file->build_id_size != request->build_id_size ||
		memcmp(file->build_id, request->build_id, request->build_id_size) != 0);
}

static int open_module(const struct symbolize_request *request, struct elf_file **ret,
		       enum symbolize_status *ret_status)
{
	bool vdso = strcmp(request->path, "[vdso]") == 0;
	struct elf_file *file;
	int error = vdso ? symbolize_vdso_open(&file) : elf_open(request->path, &file, NULL);
	if (error == -ENOMEM)
		return error;
	if (error) {
		*ret_status = error == -ENOEXEC || error == -EBADMSG ? SYMBOLIZE_BAD_FILE
								     : SYMBOLIZE_NO_FILE;
		return 0;
	}
	if (build_id_differs(request, file)) {
		*ret_status = SYMBOLIZE_REPLACED;
		elf_close(file);
		return 0;
	}
	*ret = file;
	return 0;
}

static int open_debug(const struct symbolize_request *request, struct symbolize_files *files)
{
	const struct elf_section *symtab = elf_section_find(files->file, ".symtab");
	bool complete = symtab && symtab->type == SHT_SYMTAB;
	if (complete && (!request->inlines || dwarf_present(files->file)))
		return 0;
	int error = debugfile_find(files->file, request->debug_path, &files->debug);
	return error == -ENOMEM ? error : 0;
}

const struct elf_file *symbolize_files_dwarf(const struct symbolize_files *files)
{
	if (dwarf_present(files->file))
		return files->file;
	return files->debug && dwarf_present(files->debug) ? files->debug : NULL;
}

int symbolize_files_open(const struct symbolize_request *request, struct symbolize_files *ret,
			 enum symbolize_status *ret_status)
{
	struct symbolize_files files = {0};
	int error = open_module(request, &files.file, ret_status);
	if (!error && files.file)
		error = open_debug(request, &files);
	const struct elf_file *dwarf =
		!error && files.file && request->inlines ? symbolize_files_dwarf(&files) : NULL;
	if (dwarf) {
		error = debugfile_find_shared(dwarf, request->debug_path, &files.shared);
		error = error == -ENOMEM ? error : 0;
	}
	if (error) {
		symbolize_files_close(&files);
		return error;
	}
	*ret = files;
	return 0;
}
