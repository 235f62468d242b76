/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What stands against loading a library into a process; see inject.h. Each reason is said with what
 * to do about it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/go_note.h"
#include "inject/inject.h"
#include "inject/process.h"

#define PROC_STATUS_BYTES_MAX 8192

bool inject_target_sees_same_file(pid_t pid, const char *path)
{
	char inside[PATH_MAX];
	struct stat ours, theirs;

	return snprintf(inside, sizeof(inside), "/proc/%d/root%s", (int)pid, path) <
		       (int)sizeof(inside) &&
	       !stat(path, &ours) && !stat(inside, &theirs) && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

static int set_not_permitted_problem(const struct injection_target *target, struct problem *problem)
{
	char scope[16];

	if (geteuid() && target->user != geteuid())
		return problem_set(problem, -EPERM,
				   "process %d belongs to user %u: attaching to it takes root "
				   "(CAP_SYS_PTRACE)",
				   (int)target->pid, (unsigned)target->user);
	process_read_proc_file("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
	if (scope[0] > '0' && scope[0] <= '9')
		return problem_set(problem, -EPERM,
				   "the system does not permit attaching to process %d "
				   "(kernel.yama.ptrace_scope is %c); as root: sysctl "
				   "kernel.yama.ptrace_scope=0, or run kymo as root",
				   (int)target->pid, scope[0]);
	if (!geteuid())
		return problem_set(
			problem, -EPERM,
			"attaching to process %d is not permitted, although kymo runs as root: it "
			"has rights that this root lacks (a container's; start that with "
			"--cap-add=SYS_PTRACE, or run kymo on the host), or a security module "
			"forbids ptrace",
			(int)target->pid);
	return problem_set(
		problem, -EPERM,
		"attaching to process %d is not permitted: it has more rights than kymo, "
		"or made itself undumpable (prctl PR_SET_DUMPABLE), or a container or "
		"security module forbids ptrace; try as root",
		(int)target->pid);
}

static long read_status_number(const char *status, const char *field)
{
	char value[64];

	return process_read_status_field(status, field, value, sizeof(value))
		       ? strtol(value, NULL, 10)
		       : -1;
}

/* Traced, by whom? */
static int check_not_traced(const char *status, const struct injection_target *target,
			    struct problem *problem)
{
	long tracer = read_status_number(status, "TracerPid");
	char path[64], name[64];

	if (tracer <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%ld/comm", tracer);
	process_read_proc_file(path, name, sizeof(name));
	name[strcspn(name, "\n")] = '\0';
	return problem_set(problem, -EBUSY,
			   "process %d is traced by process %ld (%s), and only one can trace it at "
			   "a time",
			   (int)target->pid, tracer, name);
}

/* A filter that the process shares with us (that of a container) lets through what we do; one of
 * its own may kill it for a system call that it does not make by itself. */
static int check_seccomp(const char *status, struct injection_target *target,
			 struct problem *problem)
{
	char own[PROC_STATUS_BYTES_MAX];

	process_read_proc_file("/proc/self/status", own, sizeof(own));
	if (read_status_number(status, "Seccomp") <= 0 ||
	    (read_status_number(status, "Seccomp") == read_status_number(own, "Seccomp") &&
	     read_status_number(status, "Seccomp_filters") ==
		     read_status_number(own, "Seccomp_filters")))
		return 0;
	target->can_be_sampled_from_outside = true;
	return problem_set(problem, -EPERM,
			   "process %d is in a seccomp sandbox, which may kill it for the system "
			   "calls that profiling needs",
			   (int)target->pid);
}

static int check_process_state(const char *status, struct injection_target *target,
			       struct problem *problem)
{
	char state[64];
	long leader = read_status_number(status, "Tgid");

	process_read_status_field(status, "State", state, sizeof(state));
	if (leader > 0 && leader != target->pid)
		return problem_set(problem, -EINVAL,
				   "%d is a thread of process %ld: attach to the process",
				   (int)target->pid, leader);
	if (state[0] == 'Z' || state[0] == 'X')
		return problem_set(problem, -ESRCH, "process %d has already ended",
				   (int)target->pid);
	if (read_status_number(status, "Kthread") == 1 || read_status_number(status, "VmSize") < 0)
		return problem_set(problem, -EINVAL, "%d is a thread of the kernel",
				   (int)target->pid);
	target->stopped = state[0] == 'T';
	return 0;
}

static bool segment_has_go_note(int file, const Elf64_Phdr *segment)
{
	char notes[GO_NOTE_SEARCH_BYTES];
	size_t size = segment->p_filesz < sizeof(notes) ? segment->p_filesz : sizeof(notes);

	return pread(file, notes, size, (off_t)segment->p_offset) == (ssize_t)size &&
	       go_note_is_among(notes, size);
}

/* The dynamic linker that the program names, "" for none, and whether it is Go's. */
static void inspect_segments(int file, const Elf64_Ehdr *header, struct injection_target *target,
			     char *interpreter, size_t size)
{
	Elf64_Phdr segment;

	memset(interpreter, 0, size);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (pread(file, &segment, sizeof(segment),
			  (off_t)(header->e_phoff + i * sizeof(segment))) != sizeof(segment))
			return;
		if (segment.p_type == PT_NOTE)
			target->is_go |= segment_has_go_note(file, &segment);
		if (segment.p_type != PT_INTERP)
			continue;
		if (segment.p_filesz >= size ||
		    pread(file, interpreter, segment.p_filesz, (off_t)segment.p_offset) < 0)
			interpreter[0] = '\0';
	}
}

static int check_executable(struct injection_target *target, struct problem *problem)
{
	Elf64_Ehdr header;
	char path[64], interpreter[256] = "";
	int file;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return errno == EACCES || errno == EPERM
			       ? set_not_permitted_problem(target, problem)
			       : problem_set(problem, -errno,
					     "cannot read the program of process "
					     "%d: %s",
					     (int)target->pid, strerror(errno));
	if (pread(file, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG))
		memset(&header, 0, sizeof(header));
	else
		inspect_segments(file, &header, target, interpreter, sizeof(interpreter));
	close(file);
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64)
		return problem_set(problem, -ENOEXEC,
				   "process %d is built for another kind of machine (kymo "
				   "profiles 64-bit x86 programs)",
				   (int)target->pid);
	target->can_be_sampled_from_outside = strstr(interpreter, "ld-musl") != NULL;
	if (target->can_be_sampled_from_outside)
		return problem_set(problem, -ENOEXEC,
				   "process %d uses musl, and libkymo needs glibc",
				   (int)target->pid);
	return 0;
}

/* Where a spool file of the process lies, as it sees it. */
static void find_mapped_spool(const struct process_maps *maps, struct injection_target *target)
{
	for (size_t i = 0; i < maps->count; i++) {
		const char *path = maps->list[i].path, *end = strstr(path, "/spool/");

		if (!end || !strstr(end, ".spool"))
			continue;
		target->is_profiled = true;
		snprintf(target->profile_session_directory,
			 sizeof(target->profile_session_directory), "%.*s", (int)(end - path),
			 path);
		return;
	}
}

static int check_mapped_libraries(struct injection_target *target, struct problem *problem)
{
	bool loader = false, libc = false;
	struct process_maps maps;
	int error = process_maps_read(target->pid, &maps);

	if (error == -EACCES || error == -EPERM)
		return set_not_permitted_problem(target, problem);
	if (error)
		return problem_set(problem, error, "cannot read the memory map of process %d: %s",
				   (int)target->pid, strerror(-error));
	for (size_t i = 0; i < maps.count; i++) {
		loader = loader || process_path_is_loader(maps.list[i].path);
		libc = libc || process_path_is_libc(maps.list[i].path);
	}
	find_mapped_spool(&maps, target);
	process_maps_free(&maps);
	target->can_be_sampled_from_outside = !loader || !libc;
	if (target->can_be_sampled_from_outside)
		return problem_set(
			problem, -ENOEXEC,
			"process %d is statically linked: kymo cannot load a library into it",
			(int)target->pid);
	return 0;
}

/* Its interceptors know the threads that it has seen begin, and their stacks: a thread that opens a
 * library on a stack of ours ended in its run time, with a lock held. */
static int check_no_sanitizer(const struct injection_target *target, int memory,
			      struct problem *problem)
{
	struct process_symbols symbols;
	char path[64], program[4096];
	struct process_maps maps;
	bool found = false;
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)target->pid);
	length = readlink(path, program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	if (process_maps_read(target->pid, &maps))
		return 0;
	for (size_t i = 0; !found && i < maps.count; i++) {
		const struct process_mapping *mapping = &maps.list[i];

		if (mapping->offset != 0 ||
		    (strcmp(mapping->path, program) != 0 &&
		     !strstr(process_path_to_base_name(mapping->path), "tsan")) ||
		    process_symbols_read(memory, mapping->start, &symbols))
			continue;
		found = process_symbols_find_address(&symbols, "__tsan_init") != 0;
		process_symbols_free(&symbols);
	}
	process_maps_free(&maps);
	return !found ? 0
		      : problem_set(problem, -ENOTSUP,
				    "process %d runs under ThreadSanitizer: kymo cannot load a "
				    "library into it; start it with kymo run",
				    (int)target->pid);
}

/* There it has another number, by which its library would name what it writes. */
static int check_pid_namespace(struct injection_target *target, struct problem *problem)
{
	char path[64], theirs[64] = "", ours[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)target->pid);
	if (readlink(path, theirs, sizeof(theirs) - 1) <= 0 ||
	    readlink("/proc/self/ns/pid", ours, sizeof(ours) - 1) <= 0 || !strcmp(theirs, ours))
		return 0;
	target->can_be_sampled_from_outside = true;
	return problem_set(
		problem, -ENOTSUP,
		"process %d runs in another PID namespace (a container): run kymo inside "
		"it",
		(int)target->pid);
}

int inject_check_target(pid_t pid, struct injection_target *ret, struct problem *problem)
{
	char path[64], status[PROC_STATUS_BYTES_MAX], ids[64];
	ssize_t length;
	int error, memory;

	*ret = (struct injection_target){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	length = process_read_proc_file(path, status, sizeof(status));
	if (length <= 0)
		return problem_set(problem, -ESRCH, "there is no process %d", (int)pid);
	if (pid == getpid())
		return problem_set(problem, -EINVAL, "kymo cannot attach to itself");
	/* "real effective saved filesystem" */
	if (process_read_status_field(status, "Uid", ids, sizeof(ids)))
		sscanf(ids, "%*u %u", &ret->user);
	if (process_read_status_field(status, "Gid", ids, sizeof(ids)))
		sscanf(ids, "%*u %u", &ret->group);
	error = check_process_state(status, ret, problem);
	if (!error)
		error = check_not_traced(status, ret, problem);
	if (!error)
		error = check_executable(ret, problem);
	if (!error)
		error = check_mapped_libraries(ret, problem);
	if (!error)
		error = check_pid_namespace(ret, problem);
	if (!error)
		error = check_seccomp(status, ret, problem);
	if (error)
		return error;
	/* The kernel asks for the same rights here as for ptrace. */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	memory = open(path, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return set_not_permitted_problem(ret, problem);
	error = check_no_sanitizer(ret, memory, problem);
	close(memory);
	return error;
}
