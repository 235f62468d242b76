/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The files that speak about one module: itself, checked to be the one that ran, and where its
 * debug information was split off.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/symbols/private.h"
#include "analysis/symbols/vdso.h"
#include "binary/debugfile.h"
#include "binary/dwarf/dwarf.h"

void symbolizer_files_close(struct symbolizer_files *files)
{
	elf_close(files->file);
	elf_close(files->debug);
	elf_close(files->shared);
	*files = (struct symbolizer_files){0};
}

static bool build_id_differs(const struct symbolizer_request *request, const struct elf_file *file)
{
	return request->build_id_size > 0 &&
	       (file->build_id_size != request->build_id_size ||
		memcmp(file->build_id, request->build_id, request->build_id_size) != 0);
}

#define KEPT_FILES_MAX 256

static int kept_files[KEPT_FILES_MAX];
static unsigned kept_file_count;

void symbolizer_keep_file_open(int descriptor)
{
	int kept = kept_file_count < KEPT_FILES_MAX ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : -1;

	if (kept >= 0)
		kept_files[kept_file_count++] = kept;
}

void symbolizer_keep_program_open(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (file < 0)
		return;
	symbolizer_keep_file_open(file);
	close(file);
}

/* Without a build-id a file is known by its inode, on the machine where it ran. */
static bool inode_differs(const struct symbolizer_request *request)
{
	struct stat status;

	return !request->build_id_size && request->inode && !stat(request->path, &status) &&
	       status.st_ino != request->inode;
}

static struct elf_file *open_if_it_is_the_same(const struct symbolizer_request *request,
					       const char *path)
{
	struct elf_file *file;
	struct stat status;

	if (!request->build_id_size &&
	    (!request->inode || stat(path, &status) || status.st_ino != request->inode))
		return NULL;
	if (elf_open(path, &file, NULL))
		return NULL;
	if (!build_id_differs(request, file))
		return file;
	elf_close(file);
	return NULL;
}

/* The file is replaced, deleted, or in another root: a process that still has it mapped shows it
 * (proc(5)), or kymo opened it before the program ran or while it did. */
static struct elf_file *open_original_of_replaced_file(const struct symbolizer_request *request)
{
	struct elf_file *file = NULL;
	char path[96];

	if (request->pid) {
		snprintf(path, sizeof(path), "/proc/%u/map_files/%" PRIx64 "-%" PRIx64,
			 request->pid, request->mapping_start, request->mapping_end);
		file = open_if_it_is_the_same(request, path);
		snprintf(path, sizeof(path), "/proc/%u/exe", request->pid);
		if (!file)
			file = open_if_it_is_the_same(request, path);
	}
	for (unsigned i = 0; !file && i < kept_file_count; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", kept_files[i]);
		file = open_if_it_is_the_same(request, path);
	}
	return file;
}

static int open_module_file(const struct symbolizer_request *request, struct elf_file **ret,
			    enum symbolizer_status_kind *ret_status)
{
	bool vdso = strcmp(request->path, "[vdso]") == 0;
	struct elf_file *file;
	int error = vdso ? vdso_elf_open(&file) : elf_open(request->path, &file, NULL);
	if (error == -ENOMEM)
		return error;
	if (error && !vdso) {
		*ret = open_original_of_replaced_file(request);
		if (*ret)
			return 0;
	}
	if (error) {
		*ret_status = error == -ENOEXEC || error == -EBADMSG ? SYMBOLIZER_BAD_FILE
								     : SYMBOLIZER_NO_FILE;
		return 0;
	}
	if (build_id_differs(request, file) || (!vdso && inode_differs(request))) {
		elf_close(file);
		*ret = open_original_of_replaced_file(request);
		if (!*ret)
			*ret_status = SYMBOLIZER_FILE_REPLACED;
		return 0;
	}
	*ret = file;
	return 0;
}

static int open_debug_file_if_needed(const struct symbolizer_request *request,
				     struct symbolizer_files *files)
{
	const struct elf_section *symtab = elf_section_find(files->file, ".symtab");
	bool complete = symtab && symtab->type == SHT_SYMTAB;
	if (complete && (!request->with_inlines || dwarf_file_has_debug_info(files->file)))
		return 0;
	int error = debugfile_find(files->file, request->debug_search_path, &files->debug);
	return error == -ENOMEM ? error : 0;
}

const struct elf_file *symbolizer_files_find_dwarf(const struct symbolizer_files *files)
{
	if (dwarf_file_has_debug_info(files->file))
		return files->file;
	return files->debug && dwarf_file_has_debug_info(files->debug) ? files->debug : NULL;
}

int symbolizer_files_open(const struct symbolizer_request *request, struct symbolizer_files *ret,
			  enum symbolizer_status_kind *ret_status)
{
	struct symbolizer_files files = {0};
	int error = open_module_file(request, &files.file, ret_status);
	if (!error && files.file)
		error = open_debug_file_if_needed(request, &files);
	const struct elf_file *dwarf = !error && files.file && request->with_inlines
					       ? symbolizer_files_find_dwarf(&files)
					       : NULL;
	if (dwarf) {
		error = debugfile_find_dwz_shared(dwarf, request->debug_search_path, &files.shared);
		error = error == -ENOMEM ? error : 0;
	}
	if (error) {
		symbolizer_files_close(&files);
		return error;
	}
	*ret = files;
	return 0;
}
