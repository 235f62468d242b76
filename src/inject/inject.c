/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See inject.h. All tracing is done in a child process: whatever becomes of it, the kernel lets go
 * of its tracees when it ends.
 */
#include "inject/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "inject/candidates.h"
#include "inject/code.h"
#include "inject/process.h"
#include "inject/return_frame.h"
#include "inject/stack.h"
#include "inject/tracee.h"

#define SECOND_NS      1000000000ull
#define SEARCH_SECONDS 10 /* for a thread at a good place */
#define CALL_NS        (30 * SECOND_NS)
#define PATIENCE_TURNS 3000000u /* of sched_yield(): a second or a few */
#define STACK_SIZE     (256u << 10)
#define CODE_SIZE      4096u
#define VDSO_MAX       (64u << 10)
#define OPEN_FLAGS     2u          /* RTLD_NOW, RTLD_LOCAL */
#define OPEN_INTERNAL  0x80000000u /* __RTLD_DLOPEN, which __libc_dlopen_mode wants */

/* One run, in the child. */
struct inject {
	const struct inject_target *target;
	const struct inject_call *call;
	struct problem *problem;
	int memory;
	struct tracee tracee;
	struct code_block block;
	uint64_t instruction;               /* a `syscall` */
	uint64_t area, area_size, block_at; /* code, stack, frame, block, argument */
	bool silent;                        /* nothing tells why dlopen failed */
	bool went_back;                     /* the thread found back by itself */
};

/* What the child tells. */
struct inject_outcome {
	int error, result;
	struct problem problem;
};

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

static int gone(struct inject *inject)
{
	return problem_set(inject->problem, -ESRCH, "process %d ended while kymo was attaching",
			   (int)inject->target->pid);
}

/* ---- finding functions and instructions ---- */

static int read_symbols(struct inject *inject, const struct process_maps *maps,
			bool (*wanted)(const char *path), struct process_symbols *ret)
{
	for (size_t i = 0; i < maps->count; i++) {
		if (wanted(maps->list[i].path) && maps->list[i].offset == 0 &&
		    !process_symbols_read(inject->memory, maps->list[i].start, ret))
			return 0;
	}
	memset(ret, 0, sizeof(*ret));
	return -ENOENT;
}

static bool is_libdl(const char *path)
{
	return !strncmp(process_base_name(path), "libdl.so.2", 10) ||
	       !strncmp(process_base_name(path), "libdl-2.", 8);
}

/* dlopen has been in libc.so.6 since glibc 2.34; before that in libdl, and where that is not loaded
 * libc has a function of its own for it. */
static int find_functions(struct inject *inject, const struct process_maps *maps)
{
	struct code_block *block = &inject->block;
	struct process_symbols libc, libdl;

	if (read_symbols(inject, maps, process_is_libc, &libc))
		return problem_set(inject->problem, -ENOEXEC,
				   "cannot find the functions of libc in process %d",
				   (int)inject->target->pid);
	read_symbols(inject, maps, is_libdl, &libdl);
	block->flags = OPEN_FLAGS;
	block->errno_location = process_symbols_address(&libc, "__errno_location");
	block->open = process_symbols_address(&libc, "dlopen");
	block->symbol = process_symbols_address(&libc, "dlsym");
	block->error = process_symbols_address(&libc, "dlerror");
	if (!block->open || !block->symbol || !block->error) {
		block->open = process_symbols_address(&libdl, "dlopen");
		block->symbol = process_symbols_address(&libdl, "dlsym");
		block->error = process_symbols_address(&libdl, "dlerror");
	}
	if (!block->open || !block->symbol || !block->error) {
		block->open = process_symbols_address(&libc, "__libc_dlopen_mode");
		block->symbol = process_symbols_address(&libc, "__libc_dlsym");
		block->error = block->errno_location;
		block->flags = OPEN_FLAGS | OPEN_INTERNAL;
		inject->silent = true;
	}
	process_symbols_free(&libc);
	process_symbols_free(&libdl);
	if (!block->open || !block->symbol || !block->errno_location)
		return problem_set(inject->problem, -ENOEXEC, "process %d has no dlopen",
				   (int)inject->target->pid);
	return 0;
}

/* Any `syscall` will do; the kernel's own object has one, in code that is always there. */
static int find_instruction(struct inject *inject, const struct process_maps *maps)
{
	static uint8_t bytes[VDSO_MAX];

	for (size_t i = 0; i < maps->count; i++) {
		const struct process_mapping *mapping = &maps->list[i];
		size_t size = mapping->end - mapping->start;

		if (!mapping->executable ||
		    (strcmp(mapping->path, "[vdso]") && !process_is_libc(mapping->path)))
			continue;
		if (size > sizeof(bytes))
			size = sizeof(bytes);
		if (!process_read(inject->memory, mapping->start, bytes, size))
			continue;
		for (size_t at = 0; at + 2 <= size; at++) {
			if (bytes[at] == 0x0f && bytes[at + 1] == 0x05)
				inject->instruction = mapping->start + at;
		}
	}
	return inject->instruction
		       ? 0
		       : problem_set(inject->problem, -ENOEXEC,
				     "cannot find a system call instruction in process %d",
				     (int)inject->target->pid);
}

static int find_all(struct inject *inject)
{
	struct process_maps maps;
	int error = process_maps_read(inject->target->pid, &maps);

	if (error)
		return gone(inject);
	error = find_functions(inject, &maps);
	if (!error)
		error = find_instruction(inject, &maps);
	process_maps_free(&maps);
	return error;
}

/* ---- the thread ---- */

/* One round over the threads: 1 when one is stopped at a good place, 0 when none is. */
static int try_threads(struct inject *inject, struct stack_judge *judge, uint64_t end,
		       const char **ret_why)
{
	struct candidates candidates;
	int error = candidates_list(inject->target->pid, &candidates);

	if (error || !candidates.count)
		return error;
	for (size_t i = 0; i < candidates.count && now_ns() < end; i++) {
		error = tracee_stop(&inject->tracee, inject->target->pid, candidates.tids[i],
				    inject->memory);
		if (error == -EPERM)
			return error;
		if (error)
			continue;
		if (stack_is_safe(judge, &inject->tracee.registers, ret_why))
			return 1;
		tracee_resume_call(&inject->tracee);
		tracee_release(&inject->tracee);
	}
	return 0;
}

static int borrow_thread(struct inject *inject)
{
	struct timespec pause = {.tv_nsec = 1000000};
	unsigned patience = inject->call->patience ? inject->call->patience : SEARCH_SECONDS;
	uint64_t end = now_ns() + patience * SECOND_NS;
	const char *why = "not to be stopped";
	struct stack_judge *judge;
	int got = stack_judge_create(inject->target->pid, inject->memory, &judge);

	if (got)
		return problem_set(inject->problem, got, "cannot look into process %d: %s",
				   (int)inject->target->pid, strerror(-got));
	do {
		got = try_threads(inject, judge, end, &why);
		pause.tv_nsec = pause.tv_nsec < 8000000 ? pause.tv_nsec * 3 / 2 : 1100000;
		if (!got)
			nanosleep(&pause, NULL);
	} while (!got && now_ns() < end);
	stack_judge_destroy(judge);
	if (got == -EPERM)
		return problem_set(inject->problem, got,
				   "the system does not let kymo attach to process %d",
				   (int)inject->target->pid);
	if (got < 0)
		return gone(inject);
	return got ? 0
		   : problem_set(inject->problem, -EBUSY,
				 "no thread of process %d was met at a place where a library can "
				 "be loaded (the last one was %s); try again",
				 (int)inject->target->pid, why);
}

/* ---- memory of ours in the process ---- */

static int call_system(struct inject *inject, long number, uint64_t first, uint64_t second,
		       uint64_t third, uint64_t fourth, int64_t *ret)
{
	uint64_t arguments[6] = {first, second, third, fourth, (uint64_t)-1, 0};
	int error =
		tracee_system_call(&inject->tracee, inject->instruction, arguments, number, ret);

	return error ? error : *ret < 0 && *ret > -4096 ? (int)*ret : 0;
}

/* code | stack, growing down | frame | block | argument */
static int make_area(struct inject *inject)
{
	int64_t address = 0, ignored;
	int error;

	inject->area_size = CODE_SIZE + STACK_SIZE + RETURN_FRAME_SIZE + sizeof(inject->block) +
			    inject->call->block_size + 4096;
	inject->area_size &= ~4095ull;
	error = call_system(inject, SYS_mmap, 0, inject->area_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, &address);
	if (error)
		return error;
	inject->area = (uint64_t)address;
	inject->block_at = inject->area + CODE_SIZE + STACK_SIZE + RETURN_FRAME_SIZE;
	return call_system(inject, SYS_mprotect, inject->area, CODE_SIZE, PROT_READ | PROT_EXEC, 0,
			   &ignored);
}

static void drop_area(struct inject *inject)
{
	int64_t ignored;

	if (inject->area)
		call_system(inject, SYS_munmap, inject->area, inject->area_size, 0, 0, &ignored);
}

static bool fill_area(struct inject *inject)
{
	struct code_block *block = &inject->block;
	static uint8_t frame[RETURN_FRAME_SIZE] __attribute__((aligned(64)));
	uint64_t frame_at = inject->area + CODE_SIZE + STACK_SIZE;

	block->patience = PATIENCE_TURNS;
	block->argument = inject->block_at + sizeof(*block);
	block->frame = return_frame_make(frame, frame_at, &inject->tracee);
	snprintf(block->library, sizeof(block->library), "%s", inject->call->library);
	snprintf(block->function, sizeof(block->function), "%s", inject->call->function);
	return process_write(inject->memory, inject->area, inject_code, inject_code_size()) &&
	       process_write(inject->memory, frame_at, frame, sizeof(frame)) &&
	       process_write(inject->memory, inject->block_at, block, sizeof(*block)) &&
	       process_write(inject->memory, block->argument, inject->call->block,
			     inject->call->block_size);
}

/* ---- the call ---- */

static int explain(struct inject *inject, int error, int signal)
{
	switch (error) {
	case -ETIMEDOUT:
		return problem_set(inject->problem, error,
				   "loading libkymo into process %d takes too long; it was left "
				   "to finish by itself",
				   (int)inject->target->pid);
	case -EFAULT:
		return problem_set(
			inject->problem, error,
			"loading libkymo into process %d failed (%s); the process goes on",
			(int)inject->target->pid, strsignal(signal));
	default:
		return gone(inject);
	}
}

/* What dlopen or dlsym said. */
static int explain_loader(struct inject *inject)
{
	char text[512] = "";

	for (size_t i = 0; !inject->silent && inject->block.error_text && i + 1 < sizeof(text);
	     i++) {
		if (!process_read(inject->memory, inject->block.error_text + i, text + i, 1))
			text[i] = '\0';
		if (!text[i])
			break;
	}
	return problem_set(inject->problem, -ENOEXEC, "process %d cannot load libkymo%s%s",
			   (int)inject->target->pid, *text ? ": " : "", text);
}

static int run_code(struct inject *inject, int *ret_result)
{
	struct user_regs_struct registers = inject->tracee.registers;
	int signal, error;

	registers.rip = inject->area;
	registers.rsp = inject->area + CODE_SIZE + STACK_SIZE - 64;
	registers.rbp = 0;
	registers.rbx = inject->block_at;
	registers.orig_rax = (unsigned long long)-1;
	registers.eflags &= ~0x500ull; /* no trap, and strings upwards */
	error = tracee_run(&inject->tracee, &registers, inject->block_at, CALL_NS, &signal);
	if (error)
		return explain(inject, error, signal);
	inject->went_back = !tracee_is_within(&inject->tracee, inject->area, CODE_SIZE);
	if (!process_read(inject->memory, inject->block_at, &inject->block, sizeof(inject->block)))
		return gone(inject);
	if (inject->block.error_text)
		return explain_loader(inject);
	*ret_result = (int)inject->block.result;
	return 0;
}

/* The thread is ours from here on. Whatever happens, it is put back, but for a call that does not
 * end: then it finds back by itself. */
static int use_thread(struct inject *inject, int *ret_result)
{
	struct tracee *tracee = &inject->tracee;
	int error = tracee_save(tracee);

	if (error) {
		tracee_resume_call(tracee);
		tracee_release(tracee);
		return gone(inject);
	}
	error = make_area(inject);
	if (!error && !fill_area(inject))
		error = -EIO;
	if (error)
		problem_set(inject->problem, error, "no memory to be had in process %d: %s",
			    (int)inject->target->pid, strerror(-error));
	else
		error = run_code(inject, ret_result);
	if (error == -ETIMEDOUT)
		return error;
	if (!inject->went_back) {
		drop_area(inject);
		tracee_restore(tracee);
		tracee_resume_call(tracee);
	}
	tracee_release(tracee);
	return error;
}

/* ---- the child that does it ---- */

static int work(struct inject *inject, int *ret_result)
{
	char path[64];
	int error;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)inject->target->pid);
	inject->memory = open(path, O_RDWR | O_CLOEXEC);
	if (inject->memory < 0)
		return gone(inject);
	error = find_all(inject);
	if (!error)
		error = borrow_thread(inject);
	if (!error)
		error = use_thread(inject, ret_result);
	close(inject->memory);
	return error;
}

static _Noreturn void run_child(const struct inject_target *target, const struct inject_call *call,
				struct inject_outcome *outcome)
{
	static struct inject inject;

	inject = (struct inject){.target = target, .call = call, .problem = &outcome->problem};
	outcome->error = work(&inject, &outcome->result);
	_exit(0);
}

static void wait_for_child(pid_t child)
{
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

int inject_run(const struct inject_target *target, const struct inject_call *call, int *ret_result,
	       struct problem *problem)
{
	struct inject_outcome *outcome;
	sigset_t all, mask;
	int error;
	pid_t child;

	if (strlen(call->library) >= CODE_LIBRARY_MAX ||
	    strlen(call->function) >= CODE_FUNCTION_MAX || call->block_size > INJECT_BLOCK_MAX)
		return problem_set(problem, -E2BIG, "too many settings to hand over");
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (outcome == MAP_FAILED)
		return problem_set(problem, -ENOMEM, "out of memory");
	outcome->error = -EIO;
	problem_set(&outcome->problem, 0, "attaching to process %d was cut short",
		    (int)target->pid);
	/* The child finishes what it began, whatever signals come. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	child = fork();
	if (!child)
		run_child(target, call, outcome);
	if (child > 0)
		wait_for_child(child);
	else
		problem_set(&outcome->problem, 0, "cannot start a process: %s", strerror(errno));
	sigprocmask(SIG_SETMASK, &mask, NULL);
	*ret_result = outcome->result;
	error = outcome->error;
	if (error)
		*problem = outcome->problem;
	munmap(outcome, sizeof(*outcome));
	return error;
}
