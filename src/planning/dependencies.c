/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See dependencies.h. `ld.so --list PROGRAM` prints lines such as
 *
 *	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f0a1c000000)
 *	/lib64/ld-linux-x86-64.so.2 (0x00007f0a1c200000)
 *
 * and runs no code of the program.
 */
#include "planning/dependencies.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "binary/elf.h"
#include "launch/file_limit.h"

/* PT_INTERP; false: none. */
static bool find_loader_path(const struct elf_file *file, char *ret, size_t size)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];

		if (segment->p_type != PT_INTERP || !segment->p_filesz || segment->p_filesz > size)
			continue;
		if (elf_read_bytes(file, segment->p_offset, ret, segment->p_filesz))
			return false;
		ret[segment->p_filesz - 1] = '\0';
		return true;
	}
	return false;
}

/* The path in a line of the loader; NULL: none (the vDSO, "not found"). */
static char *parse_loader_line(char *line)
{
	char *start = strstr(line, " => "), *end;

	start = start ? start + 4 : line + strspn(line, " \t");
	end = strstr(start, " (0x");
	if (*start != '/' || !end)
		return NULL;
	*end = '\0';
	return start;
}

static int append_dependency(char ***list, size_t *count, const char *path)
{
	char **larger = reallocarray(*list, *count + 2, sizeof(**list));

	if (!larger)
		return -ENOMEM;
	*list = larger;
	larger[*count] = strdup(path);
	larger[*count + 1] = NULL;
	return larger[(*count)++] ? 0 : -ENOMEM;
}

static int read_loader_output(FILE *answer, char ***ret)
{
	size_t size = 0, count = 0;
	char *line = NULL;
	int error = 0;

	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		error = -ENOMEM;
	while (!error && getline(&line, &size, answer) >= 0) {
		char *path = parse_loader_line(line);

		if (path)
			error = append_dependency(ret, &count, path);
	}
	free(line);
	return error;
}

/* The read end of what the loader prints; its errors go nowhere: what is missing is just not
 * listed. */
static int spawn_loader_listing(const char *loader, const char *program, pid_t *ret_pid)
{
	const char *arguments[] = {loader, "--list", program, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	sigemptyset(&defaults);
	if (file_limit_kills_programs())
		sigaddset(&defaults, SIGXFSZ);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	error = posix_spawn(ret_pid, loader, &actions, &attributes, (char *const *)arguments,
			    environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (!error)
		return ends[0];
	close(ends[0]);
	return -error;
}

int instrument_list_dependencies(const char *program, char ***ret, struct problem *problem)
{
	char loader[256];
	struct elf_file *file;
	bool has_loader;
	FILE *answer;
	pid_t pid;
	int status, error = elf_open(program, &file, problem);

	*ret = NULL;
	if (error)
		return error;
	has_loader = find_loader_path(file, loader, sizeof(loader));
	elf_close(file);
	if (!has_loader) {
		*ret = calloc(1, sizeof(**ret));
		return *ret ? 0 : problem_set(problem, -ENOMEM, "out of memory");
	}
	status = spawn_loader_listing(loader, program, &pid);
	answer = status < 0 ? NULL : fdopen(status, "r");
	if (!answer)
		return problem_set(problem, status < 0 ? status : -errno, "cannot run '%s': %s",
				   loader, strerror(status < 0 ? -status : errno));
	error = read_loader_output(answer, ret);
	fclose(answer);
	waitpid(pid, &status, 0);
	return error ? problem_set(problem, error, "out of memory") : 0;
}

void instrument_dependencies_destroy(char **list)
{
	for (char **entry = list; entry && *entry; entry++)
		free(*entry);
	free(list);
}
