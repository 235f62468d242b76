/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stack.h. Forbidden are:
 *   - the loader, whole;
 *   - malloc.o in libc: everything between the last exported function before malloc and the first
 *     one behind it, because its static functions have no names in a stripped libc;
 *   - other objects that export malloc, whole, but for the program itself and sanitizers, which are
 *     more than allocators: there a thread must be in a system call that no allocator makes;
 *   - functions of libc that fork, create threads, load or exit, by name.
 */
#include "inject/stack.h"
#include "common/foreign_file.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/array.h"

#define FRAMES_MAX              512u
#define SCANNED_STACK_BYTES_MAX (64u << 10)
#define VDSO_BYTES_MAX          (64u << 10)

struct forbidden_pc_range {
	uint64_t start, end;
	const char *reason_text;
};

/* An object whose tables are at hand. */
struct unwindable_object {
	uint64_t base, inode;
};

struct stack_checker {
	pid_t pid;
	int memory;
	Dwfl *dwfl;
	struct unwindable_object *objects;
	size_t object_count;
	struct forbidden_pc_range *forbidden_ranges;
	size_t forbidden_range_count, forbidden_range_capacity;
	bool has_own_allocator; /* the program, or a sanitizer, brings its own malloc */
	const struct user_regs_struct *registers; /* of the thread that is looked at */
};

/* ---- what is forbidden ---- */

static int add_forbidden_pc_range(struct stack_checker *judge, uint64_t start, uint64_t end,
				  const char *why)
{
	if (judge->forbidden_range_count == judge->forbidden_range_capacity) {
		size_t capacity =
			judge->forbidden_range_capacity ? judge->forbidden_range_capacity * 2 : 64;
		struct forbidden_pc_range *larger =
			realloc(judge->forbidden_ranges, capacity * sizeof(*larger));

		if (!larger)
			return -ENOMEM;
		judge->forbidden_ranges = larger;
		judge->forbidden_range_capacity = capacity;
	}
	judge->forbidden_ranges[judge->forbidden_range_count++] =
		(struct forbidden_pc_range){start, end, why};
	return 0;
}

static bool name_is_in_list(const char *name, const char *const *names)
{
	for (; *names; names++) {
		if (!strcmp(name, *names))
			return true;
	}
	return false;
}

static bool is_allocator_function_name(const char *name)
{
	static const char *const names[] = {"malloc",
					    "free",
					    "cfree",
					    "calloc",
					    "realloc",
					    "memalign",
					    "valloc",
					    "pvalloc",
					    "aligned_alloc",
					    "posix_memalign",
					    "malloc_trim",
					    "malloc_usable_size",
					    "mallinfo",
					    "mallinfo2",
					    "malloc_stats",
					    "mallopt",
					    "malloc_info",
					    "__libc_malloc",
					    "__libc_free",
					    "__libc_calloc",
					    "__libc_realloc",
					    "__libc_memalign",
					    "__malloc_hugepages",
					    NULL};

	return name_is_in_list(name, names);
}

static bool function_name_may_hold_locks(const char *name)
{
	static const char *const names[] = {"fork",
					    "_Fork",
					    "__libc_fork",
					    "vfork",
					    "__vfork",
					    "posix_spawn",
					    "posix_spawnp",
					    "daemon",
					    "forkpty",
					    "system",
					    "popen",
					    "pclose",
					    "pthread_create",
					    "thrd_create",
					    "pthread_atfork",
					    "__register_atfork",
					    "exit",
					    "_exit",
					    "quick_exit",
					    "pthread_exit",
					    "__cxa_atexit",
					    "__cxa_finalize",
					    "__cxa_thread_atexit_impl",
					    "dlopen",
					    "dlmopen",
					    "dlclose",
					    "dlsym",
					    "dlvsym",
					    "dladdr",
					    "dladdr1",
					    "dlinfo",
					    "dlerror",
					    "dl_iterate_phdr",
					    "__libc_dlopen_mode",
					    "__libc_dlsym",
					    "__libc_dlclose",
					    "_dl_sym",
					    "_dl_vsym",
					    NULL};

	return name_is_in_list(name, names);
}

/* From the first function of the group to where the next other function begins, and down to where
 * the one before ends. */
static int forbid_allocator_pc_range(struct stack_checker *judge,
				     const struct process_symbols *symbols)
{
	uint64_t low = UINT64_MAX, high = 0, before = 0, behind = UINT64_MAX;

	for (size_t i = 0; i < symbols->count; i++) {
		const struct process_symbol *symbol = &symbols->list[i];

		if (!is_allocator_function_name(symbol->name))
			continue;
		low = symbol->start < low ? symbol->start : low;
		high = symbol->end > high ? symbol->end : high;
	}
	if (low >= high)
		return 0;
	for (size_t i = 0; i < symbols->count; i++) {
		const struct process_symbol *symbol = &symbols->list[i];

		if (symbol->end <= low && symbol->end > before)
			before = symbol->end;
		if (symbol->start >= high && symbol->start < behind)
			behind = symbol->start;
	}
	return add_forbidden_pc_range(judge, before, behind == UINT64_MAX ? high : behind,
				      "the allocator");
}

static int forbid_lock_holding_libc_functions(struct stack_checker *judge,
					      const struct process_symbols *symbols)
{
	int error = forbid_allocator_pc_range(judge, symbols);

	for (size_t i = 0; !error && i < symbols->count; i++) {
		const struct process_symbol *symbol = &symbols->list[i];

		if (function_name_may_hold_locks(symbol->name) && symbol->end > symbol->start)
			error = add_forbidden_pc_range(
				judge, symbol->start, symbol->end,
				"making a process or a thread, or at its end");
	}
	return error;
}

static bool is_sanitizer_library(const char *path)
{
	const char *name = process_path_to_base_name(path);

	return !strncmp(name, "lib", 3) && strstr(name, "san.so");
}

static int collect_forbidden_pc_ranges_of_mapping(struct stack_checker *judge,
						  const struct process_maps *maps,
						  const struct process_mapping *mapping,
						  const char *program)
{
	const struct process_mapping *first = process_maps_find_start_of_file_below(maps, mapping);
	struct process_symbols symbols;
	int error = 0;

	if (process_path_is_loader(mapping->path))
		return add_forbidden_pc_range(judge, mapping->start, mapping->end, "the loader");
	if (!first || process_symbols_read(judge->memory, first->start, &symbols))
		return 0; /* no object of the loader's: it cannot be what dlopen needs */
	if (process_path_is_libc(mapping->path))
		error = forbid_lock_holding_libc_functions(judge, &symbols);
	else if (!process_symbols_find_address(&symbols, "malloc"))
		;
	else if (!strcmp(mapping->path, program) || is_sanitizer_library(mapping->path))
		judge->has_own_allocator = true;
	else
		error = add_forbidden_pc_range(judge, mapping->start, mapping->end,
					       "the allocator");
	process_symbols_free(&symbols);
	return error;
}

static int collect_all_forbidden_pc_ranges(struct stack_checker *judge,
					   const struct process_maps *maps)
{
	char path[64], program[4096];
	ssize_t length;
	int error = 0;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)judge->pid);
	length = readlink(path, program, sizeof(program) - 1);
	program[length > 0 ? length : 0] = '\0';
	for (size_t i = 0; !error && i < maps->count; i++) {
		if (maps->list[i].executable && maps->list[i].path[0] == '/')
			error = collect_forbidden_pc_ranges_of_mapping(judge, maps, &maps->list[i],
								       program);
	}
	return error;
}

static const char *find_reason_pc_is_forbidden(const struct stack_checker *judge, uint64_t pc)
{
	for (size_t i = 0; i < judge->forbidden_range_count; i++) {
		if (pc >= judge->forbidden_ranges[i].start && pc < judge->forbidden_ranges[i].end)
			return judge->forbidden_ranges[i].reason_text;
	}
	return NULL;
}

/* ---- unwinding ---- */

static int dwfl_callback_find_no_debug_file(Dwfl_Module *module, void **data, const char *name,
					    Dwarf_Addr base, const char *file, const char *link,
					    GElf_Word checksum, char **ret)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)checksum;
	*ret = NULL;
	return -1;
}

static int dwfl_callback_find_no_elf_file(Dwfl_Module *module, void **data, const char *name,
					  Dwarf_Addr base, char **ret, Elf **elf)
{
	(void)module, (void)data, (void)name, (void)base, (void)elf;
	*ret = NULL;
	return -1;
}

static pid_t dwfl_callback_next_thread(Dwfl *dwfl, void *argument, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = argument;
	return ((struct stack_checker *)argument)->pid;
}

static bool dwfl_callback_get_thread(Dwfl *dwfl, pid_t tid, void *argument, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = argument;
	return true;
}

static bool dwfl_callback_read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret,
				      void *argument)
{
	(void)dwfl;
	return process_read_memory(((struct stack_checker *)argument)->memory, address, ret,
				   sizeof(*ret));
}

/* DWARF numbers registers its own way (System V ABI, x86-64, figure 3.36). */
static bool dwfl_callback_set_registers(Dwfl_Thread *thread, void *argument)
{
	const struct user_regs_struct *from = ((struct stack_checker *)argument)->registers;
	const Dwarf_Word registers[] = {from->rax, from->rdx, from->rcx, from->rbx, from->rsi,
					from->rdi, from->rbp, from->rsp, from->r8,  from->r9,
					from->r10, from->r11, from->r12, from->r13, from->r14,
					from->r15, from->rip};

	return dwfl_thread_state_registers(thread, 0, ARRAY_SIZE(registers), registers);
}

static const Dwfl_Thread_Callbacks dwfl_thread_callbacks = {
	.next_thread = dwfl_callback_next_thread,
	.get_thread = dwfl_callback_get_thread,
	.memory_read = dwfl_callback_read_memory,
	.set_initial_registers = dwfl_callback_set_registers,
};

/* The file behind a mapping, wherever the process sees it; -1 when it is not that file any more. */
static int open_file_of_process_mapping(pid_t pid, const struct process_mapping *mapping)
{
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	char path[4200];
	struct stat status;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid,
		 (unsigned long long)mapping->start, (unsigned long long)mapping->end);
	file = foreign_open_file(&how, path, NULL);
	if (file >= 0)
		return file;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
	file = foreign_open_file(&how, path, &status);
	if (file >= 0 && status.st_ino != mapping->inode) {
		close(file);
		file = -1;
	}
	return file;
}

/* The kernel's own object has no file: its bytes are put into one. */
static int copy_vdso_to_file(const struct stack_checker *judge,
			     const struct process_mapping *mapping)
{
	size_t size = mapping->end - mapping->start;
	char *bytes = size <= VDSO_BYTES_MAX ? malloc(size) : NULL;
	int file = bytes ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (file >= 0 && (!process_read_memory(judge->memory, mapping->start, bytes, size) ||
			  write(file, bytes, size) != (ssize_t)size)) {
		close(file);
		file = -1;
	}
	free(bytes);
	return file;
}

static void report_object_to_dwfl(struct stack_checker *judge, const struct process_maps *maps,
				  const struct process_mapping *mapping)
{
	bool vdso = !strcmp(mapping->path, "[vdso]");
	const struct process_mapping *first =
		vdso ? mapping : process_maps_find_start_of_file_below(maps, mapping);
	int file;

	if (!first || (!vdso && mapping->path[0] != '/'))
		return;
	for (size_t i = 0; i < judge->object_count; i++) {
		if (judge->objects[i].base == first->start)
			return;
	}
	file = vdso ? copy_vdso_to_file(judge, mapping)
		    : open_file_of_process_mapping(judge->pid, first);
	if (file < 0)
		return;
	if (!dwfl_report_elf(judge->dwfl, mapping->path, mapping->path, file, first->start,
			     false)) {
		close(file);
		return;
	}
	judge->objects[judge->object_count++] =
		(struct unwindable_object){first->start, first->inode};
}

static int prepare_unwinding(struct stack_checker *judge, const struct process_maps *maps)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_callback_find_no_elf_file,
						 .find_debuginfo =
							 dwfl_callback_find_no_debug_file};

	judge->objects = calloc(maps->count + 1, sizeof(*judge->objects));
	judge->dwfl = dwfl_begin(&callbacks);
	if (!judge->objects || !judge->dwfl)
		return -ENOMEM;
	dwfl_report_begin(judge->dwfl);
	for (size_t i = 0; i < maps->count; i++) {
		if (maps->list[i].executable)
			report_object_to_dwfl(judge, maps, &maps->list[i]);
	}
	if (dwfl_report_end(judge->dwfl, NULL, NULL))
		return -ENOEXEC;
	/* Fails where nothing was reported; then every stack is an incomplete one. */
	dwfl_attach_state(judge->dwfl, NULL, judge->pid, &dwfl_thread_callbacks, judge);
	return 0;
}

int stack_checker_create(pid_t pid, int memory, struct stack_checker **ret)
{
	struct stack_checker *judge = calloc(1, sizeof(*judge));
	struct process_maps maps;
	int error;

	*ret = NULL;
	if (!judge)
		return -ENOMEM;
	judge->pid = pid;
	judge->memory = memory;
	error = process_maps_read(pid, &maps);
	if (error) {
		free(judge);
		return error;
	}
	error = collect_all_forbidden_pc_ranges(judge, &maps);
	if (!error)
		error = prepare_unwinding(judge, &maps);
	process_maps_free(&maps);
	if (error)
		stack_checker_destroy(judge);
	else
		*ret = judge;
	return error;
}

void stack_checker_destroy(struct stack_checker *judge)
{
	if (!judge)
		return;
	if (judge->dwfl)
		dwfl_end(judge->dwfl);
	free(judge->objects);
	free(judge->forbidden_ranges);
	free(judge);
}

/* ---- judging ---- */

struct stack_frame_list {
	uint64_t pc[FRAMES_MAX];
	uint32_t count;
};

static int collect_frame(Dwfl_Frame *frame, void *argument)
{
	struct stack_frame_list *frames = argument;
	Dwarf_Addr pc;
	bool exact;

	if (frames->count == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	frames->pc[frames->count++] = exact ? pc : pc - 1;
	return DWARF_CB_OK;
}

/* Is what is mapped at the pc still what its tables were read from? */
static bool mapping_is_unchanged(const struct stack_checker *judge, const struct process_maps *maps,
				 uint64_t pc)
{
	const struct process_mapping *mapping = process_maps_find_by_address(maps, pc), *first;

	if (!mapping || !mapping->executable)
		return false;
	first = mapping->path[0] == '[' ? mapping
					: process_maps_find_start_of_file_below(maps, mapping);
	for (size_t i = 0; first && i < judge->object_count; i++) {
		if (judge->objects[i].base == first->start &&
		    judge->objects[i].inode == first->inode)
			return true;
	}
	return false;
}

/* All of the stack's top that could be a return address into forbidden code. */
static const char *scan_stack_for_forbidden_pcs(const struct stack_checker *judge,
						const struct process_maps *maps, uint64_t sp)
{
	static uint64_t words[SCANNED_STACK_BYTES_MAX / sizeof(uint64_t)];
	const struct process_mapping *mapping = process_maps_find_by_address(maps, sp);
	size_t size = 0;
	const char *why;

	sp &= ~7ull;
	if (mapping)
		size = mapping->end - sp < sizeof(words) ? mapping->end - sp : sizeof(words);
	if (!size || !process_read_memory(judge->memory, sp, words, size))
		return "on a stack that cannot be read";
	for (size_t i = 0; i < size / sizeof(*words); i++) {
		why = find_reason_pc_is_forbidden(judge, words[i] - 1);
		if (why)
			return why;
	}
	return NULL;
}

/* System calls at which a thread may hold locks of libc, or is about to be another process. */
static bool syscall_may_hold_locks(uint64_t number, bool allocator_inside)
{
	switch (number) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mremap:
	case SYS_mprotect:
	case SYS_madvise:
	case SYS_brk:
	case SYS_clone:
	case SYS_clone3:
	case SYS_fork:
	case SYS_vfork:
	case SYS_execve:
	case SYS_execveat:
	case SYS_exit:
	case SYS_exit_group:
	case SYS_rt_sigreturn:
	case SYS_arch_prctl:
	case SYS_set_robust_list:
	case SYS_set_tid_address:
		return true;
	case SYS_futex:
	case SYS_sched_yield:
		return allocator_inside;
	default:
		return false;
	}
}

static bool thread_is_at_safe_point(const struct stack_checker *judge,
				    const struct process_maps *maps, const char **ret_why)
{
	const struct user_regs_struct *registers = judge->registers;
	const struct process_mapping *mapping = process_maps_find_by_address(maps, registers->rip);

	if ((int64_t)registers->orig_rax >= 0) { /* in a system call, or right behind one */
		*ret_why = "in a system call of an allocator";
		return !syscall_may_hold_locks(registers->orig_rax, judge->has_own_allocator);
	}
	*ret_why = "never seen in a system call";
	if (judge->has_own_allocator)
		return false;
	*ret_why = "in libc";
	return mapping && !process_path_is_libc(mapping->path);
}

bool stack_is_safe_for_dlopen(struct stack_checker *judge, const struct user_regs_struct *registers,
			      const char **ret_why)
{
	struct stack_frame_list frames = {.count = 0};
	struct process_maps maps;
	const char *why = NULL;
	bool complete;

	*ret_why = "not to be read";
	if (process_maps_read(judge->pid, &maps))
		return false;
	judge->registers = registers;
	complete = !dwfl_getthread_frames(judge->dwfl, judge->pid, collect_frame, &frames);
	why = find_reason_pc_is_forbidden(judge, registers->rip);
	for (uint32_t i = 0; !why && i < frames.count; i++) {
		why = find_reason_pc_is_forbidden(judge, frames.pc[i]);
		complete = complete && mapping_is_unchanged(judge, &maps, frames.pc[i]);
	}
	if (!why && !complete)
		why = scan_stack_for_forbidden_pcs(judge, &maps, registers->rsp);
	if (!why && !thread_is_at_safe_point(judge, &maps, ret_why))
		why = *ret_why;
	process_maps_free(&maps);
	*ret_why = why;
	return !why;
}
