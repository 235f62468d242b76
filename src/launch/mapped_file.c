/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See mapped_file.h.
 */
#include "launch/mapped_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "binary/elf.h"

static bool file_has_wanted_build_id(const char *path, const struct mapped_file *wanted)
{
	struct elf_file *file;
	bool same;

	if (!wanted->build_id_size || elf_open(path, &file, NULL))
		return false;
	same = file->build_id_size == wanted->build_id_size &&
	       !memcmp(file->build_id, wanted->build_id, wanted->build_id_size);
	elf_close(file);
	return same;
}

/* /proc/PID/maps and stat(2) name devices differently on some file systems (btrfs, overlayfs), so a
 * build-id is good enough. */
static bool is_same_mapped_file(const char *path, const struct mapped_file *file,
				struct stat *status)
{
	uint64_t device;

	if (stat(path, status) || !S_ISREG(status->st_mode))
		return false;
	device = (uint64_t)major(status->st_dev) << 20 | minor(status->st_dev);
	if (status->st_ino == file->inode &&
	    (device == file->device || status->st_dev == file->device))
		return true;
	return file_has_wanted_build_id(path, file);
}

bool mapped_file_find_reachable_path(const struct mapped_file *file, char *ret, size_t size,
				     struct stat *status)
{
	if (file->path[0] != '/')
		return false;
	snprintf(ret, size, "%s", file->path);
	if (is_same_mapped_file(ret, file, status))
		return true;
	snprintf(ret, size, "/proc/%u/root%s", file->pid, file->path);
	return is_same_mapped_file(ret, file, status);
}

bool mapped_file_is_program(uint32_t pid, const struct stat *status)
{
	struct stat program;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	return !stat(path, &program) && program.st_dev == status->st_dev &&
	       program.st_ino == status->st_ino;
}
