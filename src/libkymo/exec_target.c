/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See exec_target.h. Runs in vfork children: reads with raw system calls into its own stack.
 */
#include "libkymo/exec_target.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/go_note.h"
#include "common/syscalls.h"

#define FILE_HEAD_SIZE 2048

/* Preloading is refused when the kernel changes who the process is (AT_SECURE, getauxval(3)). */
static bool file_changes_user(int fd)
{
	struct stat status;

	if (sys_call2(SYS_fstat, fd, (long)&status))
		return false;
	return (status.st_mode & S_ISUID && status.st_uid != (uid_t)sys_call0(SYS_geteuid)) ||
	       (status.st_mode & S_ISGID && status.st_mode & S_IXGRP &&
		status.st_gid != (gid_t)sys_call0(SYS_getegid));
}

static bool path_is_loader(const char *path)
{
	const char *name = path;

	for (; *path; path++) {
		if (*path == '/')
			name = path + 1;
	}
	return !strncmp(name, "ld-linux", 8);
}

static bool segment_has_go_note(int fd, const Elf64_Phdr *segment)
{
	char notes[GO_NOTE_SEARCH_BYTES];
	uint64_t size = segment->p_filesz < sizeof(notes) ? segment->p_filesz : sizeof(notes);

	return sys_pread(fd, notes, size, segment->p_offset) == (long)size &&
	       go_note_is_among(notes, size);
}

static bool interpreter_is_musl(int fd, const Elf64_Phdr *segment)
{
	char path[PATH_MAX / 16] = "";

	return segment->p_filesz < sizeof(path) &&
	       sys_pread(fd, path, segment->p_filesz, segment->p_offset) > 0 &&
	       strstr(path, "ld-musl");
}

static void find_obstacle_in_elf_file(struct exec_target *target, int fd, const uint8_t *head,
				      size_t size)
{
	bool dynamic = path_is_loader(target->path), go = false;
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (size < sizeof(header) || memcmp(head, ELFMAG, SELFMAG))
		return;
	if (head[EI_CLASS] != ELFCLASS64) {
		target->profiling_obstacle_text = " was not profiled: a 32-bit program";
		return;
	}
	memcpy(&header, head, sizeof(header));
	if (header.e_phentsize != sizeof(segment) || header.e_phoff > size ||
	    header.e_phnum > (size - header.e_phoff) / sizeof(segment))
		return;
	for (size_t i = 0; i < header.e_phnum; i++) {
		memcpy(&segment, head + header.e_phoff + i * sizeof(segment), sizeof(segment));
		dynamic |= segment.p_type == PT_INTERP;
		if (segment.p_type == PT_INTERP)
			target->must_not_preload = interpreter_is_musl(fd, &segment);
		if (segment.p_type == PT_NOTE)
			go |= segment_has_go_note(fd, &segment);
	}
	if (go)
		target->profiling_obstacle_text =
			" was not sampled: a Go program, whose runtime replaces signal handlers";
	else if (target->must_not_preload)
		target->profiling_obstacle_text = " was not profiled: it uses musl";
	else if (!dynamic)
		target->profiling_obstacle_text = " was not profiled: statically linked";
	target->can_be_sampled_from_outside = target->profiling_obstacle_text != NULL;
}

struct exec_target exec_target_examine(const char *path)
{
	struct exec_target target = {.path = path};
	uint8_t head[FILE_HEAD_SIZE];
	struct stat status;
	long size;
	int fd;

	/* Opening a device would have effects; the kernel executes regular files alone. */
	if (!path || sys_call4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0) ||
	    !S_ISREG(status.st_mode))
		return target;
	fd = (int)sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	if (fd < 0)
		return target;
	target.found = true;
	size = sys_pread(fd, head, sizeof(head), 0);
	if (file_changes_user(fd))
		target.profiling_obstacle_text =
			" was not profiled: it runs with another user's rights";
	else if (size > 0)
		find_obstacle_in_elf_file(&target, fd, head, (size_t)size);
	sys_close(fd);
	return target;
}

/* execvp(3) goes on to the next directory when the kernel does not take the file. */
static bool file_may_be_executed(const char *path)
{
	struct stat status;

	return !sys_call4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status, 0) &&
	       S_ISREG(status.st_mode) &&
	       !sys_call4(SYS_faccessat2, AT_FDCWD, (long)path, X_OK, AT_EACCESS);
}

static const char *get_search_path(void)
{
	for (char **entry = environ; entry && *entry; entry++) {
		if (!strncmp(*entry, "PATH=", 5))
			return *entry + 5;
	}
	return "/bin:/usr/bin"; /* confstr(3), _CS_PATH */
}

struct exec_target exec_target_find_in_search_path(const char *name, char space[PATH_MAX])
{
	size_t length = strlen(name);

	if (!length || strchr(name, '/'))
		return exec_target_examine(name);
	for (const char *at = get_search_path(), *end; at; at = end ? end + 1 : NULL) {
		size_t directory;

		end = strchr(at, ':');
		directory = end ? (size_t)(end - at) : strlen(at);
		if (directory + length + 2 > PATH_MAX)
			continue;
		memcpy(space, at, directory);
		space[directory] = '/';
		/* an empty entry is the current directory */
		memcpy(space + directory + (directory > 0), name, length + 1);
		if (file_may_be_executed(space))
			return exec_target_examine(space);
	}
	return (struct exec_target){.path = name};
}
