/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finding and inspecting the program; see target.h.
 *
 * Preloading needs a dynamic linker (PT_INTERP), glibc's one, of this machine's kind, and a process
 * that does not run with more rights than its caller (AT_SECURE: ld.so(8) then ignores
 * LD_PRELOAD). Scripts are judged by their interpreter.
 */
#include "launch/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/foreign_file.h"
#include "common/go_note.h"
#include "console/message.h"

enum { TARGET_SCRIPT_DEPTH_MAX = 4, TARGET_HEAD_BYTES = 4096 };

static int set_not_executable_problem(const char *path, int error, struct problem *problem)
{
	struct stat status;

	if (!stat(path, &status) && S_ISDIR(status.st_mode))
		problem_set(problem, 0, "cannot execute '%s': it is a directory", path);
	else if (error == EACCES && !access(path, F_OK))
		problem_set(problem, 0,
			    "cannot execute '%s': permission denied (chmod +x, or a file system "
			    "mounted noexec?)",
			    path);
	else
		problem_set(problem, 0, "cannot execute '%s': %s", path, strerror(error));
	return error == ENOENT || error == ENOTDIR ? EXIT_PROGRAM_NOT_FOUND
						   : EXIT_PROGRAM_NOT_EXECUTABLE;
}

static bool target_is_executable(const char *path)
{
	struct stat status;

	if (stat(path, &status))
		return false;
	if (!S_ISREG(status.st_mode)) {
		errno = EACCES;
		return false;
	}
	return !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

int target_find_program(const char *name, struct target *ret, struct problem *problem)
{
	const char *search = getenv("PATH");
	char blocked[sizeof(ret->path)] = "";

	memset(ret, 0, sizeof(*ret));
	if (!*name)
		return problem_set(problem, EXIT_PROGRAM_NOT_FOUND, "the program's name is empty");
	if (strchr(name, '/')) {
		snprintf(ret->path, sizeof(ret->path), "%s", name);
		return target_is_executable(name)
			       ? 0
			       : set_not_executable_problem(name, errno, problem);
	}
	if (!search)
		search = "/bin:/usr/bin";
	for (const char *start = search, *end;; start = end + 1) {
		end = strchrnul(start, ':');
		if (snprintf(ret->path, sizeof(ret->path), "%.*s%s%s", (int)(end - start), start,
			     end > start ? "/" : "./", name) < (int)sizeof(ret->path)) {
			if (target_is_executable(ret->path))
				return 0;
			if (errno == EACCES && !*blocked)
				memcpy(blocked, ret->path, sizeof(blocked));
		}
		if (!*end)
			break;
	}
	if (*blocked)
		return set_not_executable_problem(blocked, EACCES, problem);
	return problem_set(problem, EXIT_PROGRAM_NOT_FOUND, "cannot find '%s' in PATH", name);
}

__attribute__((format(printf, 2, 3))) static void target_set_obstacle(struct target *target,
								      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(target->obstacle, sizeof(target->obstacle), format, arguments);
	va_end(arguments);
}

/* Rights of its own: set-user-id, set-group-id, file capabilities. */
static bool target_set_obstacle_if_privileged(const char *path, struct target *target)
{
	struct stat status;
	char capabilities[64];

	if (stat(path, &status))
		return false;
	if (((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
	    ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	     status.st_gid != getgid())) {
		target_set_obstacle(
			target,
			"'%s' is set-user-id or set-group-id, and the system does not preload "
			"libraries into such programs; run kymo as its owner",
			path);
		target->can_be_sampled_from_outside = !geteuid();
		return true;
	}
	if (getuid() &&
	    getxattr(path, "security.capability", capabilities, sizeof(capabilities)) > 0) {
		target_set_obstacle(
			target,
			"'%s' has file capabilities, and the system does not preload "
			"libraries into such programs; run kymo as root, or profile a copy "
			"without capabilities",
			path);
		target->can_be_sampled_from_outside = false;
		return true;
	}
	return false;
}

/* The dynamic linker that the program asks for; false when there is none or it is not readable. */
static bool target_read_dynamic_linker_path(int file, const Elf64_Ehdr *header, char *ret,
					    size_t size)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;
		size_t length;

		if (pread(file, &segment, sizeof(segment),
			  (off_t)(header->e_phoff + i * sizeof(segment))) != sizeof(segment))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		length = segment.p_filesz < size - 1 ? segment.p_filesz : size - 1;
		if (pread(file, ret, length, (off_t)segment.p_offset) != (ssize_t)length)
			return false;
		ret[length] = '\0';
		return true;
	}
	return false;
}

static bool target_has_go_note(int file, const Elf64_Ehdr *header)
{
	for (unsigned i = 0; i < header->e_phnum; i++) {
		char notes[GO_NOTE_SEARCH_BYTES];
		Elf64_Phdr segment;
		size_t size;

		if (pread(file, &segment, sizeof(segment),
			  (off_t)(header->e_phoff + i * sizeof(segment))) != sizeof(segment))
			return false;
		size = segment.p_filesz < sizeof(notes) ? segment.p_filesz : sizeof(notes);
		if (segment.p_type == PT_NOTE &&
		    pread(file, notes, size, (off_t)segment.p_offset) == (ssize_t)size &&
		    go_note_is_among(notes, size))
			return true;
	}
	return false;
}

/* execve(2) says "No such file" of a program whose interpreter is missing, which misleads. */
static int set_missing_interpreter_problem(const char *path, const char *interpreter,
					   struct problem *problem)
{
	problem_set(problem, 0, "cannot execute '%s': its interpreter '%.200s' does not exist",
		    path, interpreter);
	return EXIT_PROGRAM_NOT_FOUND;
}

/* 0, or EXIT_PROGRAM_NOT_FOUND when its dynamic linker is missing. */
static int target_find_elf_obstacle(const char *path, int file, const Elf64_Ehdr *header,
				    struct target *target, struct problem *problem)
{
	char interpreter[256];

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_machine != EM_X86_64)
		target_set_obstacle(
			target,
			"'%s' is built for another kind of machine (kymo profiles 64-bit "
			"x86 programs)",
			path);
	else if (header->e_phentsize != sizeof(Elf64_Phdr) ||
		 !target_read_dynamic_linker_path(file, header, interpreter, sizeof(interpreter)))
		target_set_obstacle(
			target, "'%s' is statically linked, so no library can be preloaded into it",
			path);
	else if (access(interpreter, F_OK))
		return set_missing_interpreter_problem(path, interpreter, problem);
	else if (strstr(interpreter, "ld-musl"))
		target_set_obstacle(target, "'%s' uses musl, and libkymo needs glibc", path);
	target->is_go =
		header->e_phentsize == sizeof(Elf64_Phdr) && target_has_go_note(file, header);
	target->can_be_sampled_from_outside =
		header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == EM_X86_64;
	return 0;
}

/* The interpreter named behind `#!`, in place. */
static char *target_parse_script_interpreter(char *head)
{
	char *start = head + 2, *end;

	start += strspn(start, " \t");
	end = start + strcspn(start, " \t\r\n");
	*end = '\0';
	return *start ? start : NULL;
}

/* One step of target_find_obstacle(): 0 and *ret_interpreter, which points into `head`, or an exit
 * status. */
static int target_find_file_obstacle(struct target *target, const char *path, char *head,
				     const char **ret_interpreter, struct problem *problem)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	int file = foreign_open_file(&how, path, NULL), status = 0;
	ssize_t length;

	*ret_interpreter = NULL;
	if (file < 0) {
		target_set_obstacle_if_privileged(path, target);
		return 0; /* executable but not readable: let it try */
	}
	memset(head, 0, TARGET_HEAD_BYTES + 1);
	length = pread(file, head, TARGET_HEAD_BYTES, 0);
	if (length > 2 && head[0] == '#' && head[1] == '!') {
		/* The kernel gives scripts no rights of their own (execve(2)). */
		*ret_interpreter = target_parse_script_interpreter(head);
		if (*ret_interpreter && access(*ret_interpreter, F_OK))
			status = set_missing_interpreter_problem(path, *ret_interpreter, problem);
	} else if (!target_set_obstacle_if_privileged(path, target) &&
		   length >= (ssize_t)sizeof(Elf64_Ehdr) && !memcmp(head, ELFMAG, SELFMAG)) {
		Elf64_Ehdr header;

		memcpy(&header, head, sizeof(header));
		status = target_find_elf_obstacle(path, file, &header, target, problem);
	}
	close(file);
	return status;
}

int target_find_obstacle(struct target *target, struct problem *problem)
{
	char path[4096], head[TARGET_HEAD_BYTES + 1];
	const char *interpreter = target->path;
	int status = 0;

	target->obstacle[0] = '\0';
	target->can_be_sampled_from_outside = true;
	target->is_go = false;
	for (unsigned depth = 0; interpreter && !status && depth < TARGET_SCRIPT_DEPTH_MAX;
	     depth++) {
		memmove(path, interpreter, strlen(interpreter) + 1);
		status = target_find_file_obstacle(target, path, head, &interpreter, problem);
	}
	return status;
}
