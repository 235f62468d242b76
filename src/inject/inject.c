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

#include "common/monotonic.h"
#include "common/time_units.h"
#include "inject/candidates.h"
#include "inject/code.h"
#include "inject/process.h"
#include "inject/return_frame.h"
#include "inject/stack.h"
#include "inject/tracee.h"

#define SAFE_THREAD_SEARCH_TIMEOUT_SECONDS 10 /* for a thread at a good place */
#define INJECTED_CALL_TIMEOUT_NS           (30 * SECOND_NS)
#define INJECTED_WAIT_YIELDS_MAX           3000000u /* of sched_yield(): a second or a few */
#define REMOTE_STACK_SIZE                  (256u << 10)
#define REMOTE_CODE_SIZE                   4096u
#define VDSO_BYTES_MAX                     (64u << 10)
#define DLOPEN_FLAGS                       2u          /* RTLD_NOW, RTLD_LOCAL */
#define DLOPEN_INTERNAL_FLAG               0x80000000u /* __RTLD_DLOPEN, which __libc_dlopen_mode wants */

/* One run, in the child. */
struct injection_job {
	const struct injection_target *target;
	const struct injection_call *call;
	struct problem *problem;
	int memory;
	struct tracee tracee;
	struct injected_code_data block;
	uint64_t instruction; /* a `syscall` */
	uint64_t remote_area_address, remote_area_size,
		remote_block_address; /* code, stack, frame, block, argument */
	bool has_no_dlerror;          /* nothing tells why dlopen failed */
	bool thread_returned_itself;  /* the thread found back by itself */
};

/* What the child tells. */
struct injection_child_report {
	int error, result;
	struct problem problem;
};

static int set_process_gone_problem(struct injection_job *inject)
{
	return problem_set(inject->problem, -ESRCH, "process %d ended while kymo was attaching",
			   (int)inject->target->pid);
}

/* ---- finding functions and instructions ---- */

static int read_symbols_of_object(struct injection_job *inject, const struct process_maps *maps,
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

static bool path_is_libdl(const char *path)
{
	return !strncmp(process_path_to_base_name(path), "libdl.so.2", 10) ||
	       !strncmp(process_path_to_base_name(path), "libdl-2.", 8);
}

/* dlopen has been in libc.so.6 since glibc 2.34; before that in libdl, and where that is not loaded
 * libc has a function of its own for it. */
static int find_loader_functions(struct injection_job *inject, const struct process_maps *maps)
{
	struct injected_code_data *block = &inject->block;
	struct process_symbols libc, libdl;

	if (read_symbols_of_object(inject, maps, process_path_is_libc, &libc))
		return problem_set(inject->problem, -ENOEXEC,
				   "cannot find the functions of libc in process %d",
				   (int)inject->target->pid);
	read_symbols_of_object(inject, maps, path_is_libdl, &libdl);
	block->flags = DLOPEN_FLAGS;
	block->errno_location_function = process_symbols_find_address(&libc, "__errno_location");
	block->errno_to_message_offset = process_symbols_find_tls_pair_distance(
		&libc, "errno", "__libc_dlerror_result"); /* both since glibc 2.34 */
	block->open = process_symbols_find_address(&libc, "dlopen");
	block->symbol = process_symbols_find_address(&libc, "dlsym");
	block->error = process_symbols_find_address(&libc, "dlerror");
	if (!block->open || !block->symbol || !block->error) {
		block->open = process_symbols_find_address(&libdl, "dlopen");
		block->symbol = process_symbols_find_address(&libdl, "dlsym");
		block->error = process_symbols_find_address(&libdl, "dlerror");
	}
	if (!block->open || !block->symbol || !block->error) {
		block->open = process_symbols_find_address(&libc, "__libc_dlopen_mode");
		block->symbol = process_symbols_find_address(&libc, "__libc_dlsym");
		block->error = block->errno_location_function;
		block->flags = DLOPEN_FLAGS | DLOPEN_INTERNAL_FLAG;
		inject->has_no_dlerror = true;
	}
	process_symbols_free(&libc);
	process_symbols_free(&libdl);
	if (!block->open || !block->symbol || !block->errno_location_function)
		return problem_set(inject->problem, -ENOEXEC, "process %d has no dlopen",
				   (int)inject->target->pid);
	return 0;
}

/* Any `syscall` will do; the kernel's own object has one, in code that is always there. */
static int find_syscall_instruction(struct injection_job *inject, const struct process_maps *maps)
{
	static uint8_t bytes[VDSO_BYTES_MAX];

	for (size_t i = 0; i < maps->count; i++) {
		const struct process_mapping *mapping = &maps->list[i];
		size_t size = mapping->end - mapping->start;

		if (!mapping->executable ||
		    (strcmp(mapping->path, "[vdso]") && !process_path_is_libc(mapping->path)))
			continue;
		if (size > sizeof(bytes))
			size = sizeof(bytes);
		if (!process_read_memory(inject->memory, mapping->start, bytes, size))
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

static int find_injection_addresses(struct injection_job *inject)
{
	struct process_maps maps;
	int error = process_maps_read(inject->target->pid, &maps);

	if (error)
		return set_process_gone_problem(inject);
	error = find_loader_functions(inject, &maps);
	if (!error)
		error = find_syscall_instruction(inject, &maps);
	process_maps_free(&maps);
	return error;
}

/* ---- the thread ---- */

/* One round over the threads: 1 when one is stopped at a good place, 0 when none is. */
static int stop_first_safe_thread(struct injection_job *inject, struct stack_checker *judge,
				  uint64_t end, const char **ret_why)
{
	struct thread_candidates candidates;
	int error = candidates_list_threads_by_rank(inject->target->pid, &candidates);

	if (error || !candidates.count)
		return error;
	for (size_t i = 0; i < candidates.count && monotonic_ns() < end; i++) {
		error = tracee_stop(&inject->tracee, inject->target->pid, candidates.tids[i],
				    inject->memory);
		if (error == -EPERM)
			return error;
		if (error)
			continue;
		if (stack_is_safe_for_dlopen(judge, &inject->tracee.registers, ret_why))
			return 1;
		tracee_restart_syscall_if_cut_short(&inject->tracee);
		tracee_detach(&inject->tracee);
	}
	return 0;
}

/* What forbids it may have come after the target was looked at: a tracer, most of all. */
static int set_attach_refused_problem(struct injection_job *inject)
{
	struct injection_target now;
	int error = inject_check_target(inject->target->pid, &now, inject->problem);

	return error ? error
		     : problem_set(inject->problem, -EPERM,
				   "the system does not permit kymo to attach to process %d",
				   (int)inject->target->pid);
}

static int find_and_stop_safe_thread(struct injection_job *inject)
{
	struct timespec pause = {.tv_nsec = 1000000};
	unsigned patience = inject->call->patience_seconds ? inject->call->patience_seconds
							   : SAFE_THREAD_SEARCH_TIMEOUT_SECONDS;
	uint64_t end = monotonic_ns() + patience * SECOND_NS;
	const char *why = "not to be stopped";
	struct stack_checker *judge;
	int got = stack_checker_create(inject->target->pid, inject->memory, &judge);

	if (got)
		return problem_set(inject->problem, got, "cannot look into process %d: %s",
				   (int)inject->target->pid, strerror(-got));
	do {
		got = stop_first_safe_thread(inject, judge, end, &why);
		pause.tv_nsec = pause.tv_nsec < 8000000 ? pause.tv_nsec * 3 / 2 : 1100000;
		if (!got)
			nanosleep(&pause, NULL);
	} while (!got && monotonic_ns() < end);
	stack_checker_destroy(judge);
	if (got == -EPERM)
		return set_attach_refused_problem(inject);
	if (got < 0)
		return set_process_gone_problem(inject);
	return got ? 0
		   : problem_set(inject->problem, -EBUSY,
				 "no thread of process %d was at a point where a library can be "
				 "loaded safely (the last one was %s); try again",
				 (int)inject->target->pid, why);
}

/* ---- memory of ours in the process ---- */

static int call_remote_syscall(struct injection_job *inject, long number, uint64_t first,
			       uint64_t second, uint64_t third, uint64_t fourth, int64_t *ret)
{
	uint64_t arguments[6] = {first, second, third, fourth, (uint64_t)-1, 0};
	int error =
		tracee_make_syscall(&inject->tracee, inject->instruction, arguments, number, ret);

	return error ? error : *ret < 0 && *ret > -4096 ? (int)*ret : 0;
}

/* code | stack, growing down | frame | block | argument */
static int map_remote_area(struct injection_job *inject)
{
	int64_t address = 0, ignored;
	int error;

	inject->remote_area_size = REMOTE_CODE_SIZE + REMOTE_STACK_SIZE + SIGRETURN_FRAME_SIZE +
				   sizeof(inject->block) + inject->call->block_size + 4096;
	inject->remote_area_size &= ~4095ull;
	error = call_remote_syscall(inject, SYS_mmap, 0, inject->remote_area_size,
				    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, &address);
	if (error)
		return error;
	inject->remote_area_address = (uint64_t)address;
	inject->remote_block_address = inject->remote_area_address + REMOTE_CODE_SIZE +
				       REMOTE_STACK_SIZE + SIGRETURN_FRAME_SIZE;
	return call_remote_syscall(inject, SYS_mprotect, inject->remote_area_address,
				   REMOTE_CODE_SIZE, PROT_READ | PROT_EXEC, 0, &ignored);
}

static void unmap_remote_area(struct injection_job *inject)
{
	int64_t ignored;

	if (inject->remote_area_address)
		call_remote_syscall(inject, SYS_munmap, inject->remote_area_address,
				    inject->remote_area_size, 0, 0, &ignored);
}

static bool write_remote_area(struct injection_job *inject)
{
	struct injected_code_data *block = &inject->block;
	static uint8_t frame[SIGRETURN_FRAME_SIZE] __attribute__((aligned(64)));
	uint64_t frame_at = inject->remote_area_address + REMOTE_CODE_SIZE + REMOTE_STACK_SIZE;

	block->patience = INJECTED_WAIT_YIELDS_MAX;
	block->argument = inject->remote_block_address + sizeof(*block);
	block->frame = sigreturn_frame_write(frame, frame_at, &inject->tracee);
	snprintf(block->library, sizeof(block->library), "%s", inject->call->library);
	snprintf(block->function, sizeof(block->function), "%s", inject->call->function);
	return process_write_memory(inject->memory, inject->remote_area_address, inject_code,
				    inject_get_code_size()) &&
	       process_write_memory(inject->memory, frame_at, frame, sizeof(frame)) &&
	       process_write_memory(inject->memory, inject->remote_block_address, block,
				    sizeof(*block)) &&
	       process_write_memory(inject->memory, block->argument, inject->call->block,
				    inject->call->block_size);
}

/* ---- the call ---- */

static int set_call_failure_problem(struct injection_job *inject, int error, int signal)
{
	switch (error) {
	case -ETIMEDOUT:
		return problem_set(inject->problem, error,
				   "loading libkymo into process %d takes too long; kymo let it "
				   "finish without waiting",
				   (int)inject->target->pid);
	case -EFAULT:
		return problem_set(
			inject->problem, error,
			"loading libkymo into process %d failed (%s); the process continues",
			(int)inject->target->pid, strsignal(signal));
	default:
		return set_process_gone_problem(inject);
	}
}

/* What dlopen or dlsym said. */
static int set_loader_error_problem(struct injection_job *inject)
{
	char text[512] = "";

	for (size_t i = 0;
	     !inject->has_no_dlerror && inject->block.error_text_address && i + 1 < sizeof(text);
	     i++) {
		if (!process_read_memory(inject->memory, inject->block.error_text_address + i,
					 text + i, 1))
			text[i] = '\0';
		if (!text[i])
			break;
	}
	return problem_set(inject->problem, -ENOEXEC, "process %d cannot load libkymo%s%s",
			   (int)inject->target->pid, *text ? ": " : "", text);
}

static int run_remote_code(struct injection_job *inject, int *ret_result)
{
	struct user_regs_struct registers = inject->tracee.registers;
	int signal, error;

	registers.rip = inject->remote_area_address;
	registers.rsp = inject->remote_area_address + REMOTE_CODE_SIZE + REMOTE_STACK_SIZE - 64;
	registers.rbp = 0;
	registers.rbx = inject->remote_block_address;
	registers.orig_rax = (unsigned long long)-1;
	registers.eflags &= ~0x40500ull; /* no trap, strings upwards, no alignment check */
	error = tracee_run_code(&inject->tracee, &registers, inject->remote_block_address,
				INJECTED_CALL_TIMEOUT_NS, &signal);
	if (error)
		return set_call_failure_problem(inject, error, signal);
	inject->thread_returned_itself = !tracee_pc_is_within(
		&inject->tracee, inject->remote_area_address, REMOTE_CODE_SIZE);
	if (!process_read_memory(inject->memory, inject->remote_block_address, &inject->block,
				 sizeof(inject->block)))
		return set_process_gone_problem(inject);
	if (inject->block.error_text_address)
		return set_loader_error_problem(inject);
	*ret_result = (int)inject->block.result;
	return 0;
}

/* The thread is ours from here on. Whatever happens, it is put back, but for a call that does not
 * end: then it finds back by itself. */
static int call_on_stopped_thread(struct injection_job *inject, int *ret_result)
{
	struct tracee *tracee = &inject->tracee;
	int error;

	if (tracee_dispatches_own_calls(tracee)) {
		tracee_restart_syscall_if_cut_short(tracee);
		tracee_detach(tracee);
		return problem_set(inject->problem, -EPERM,
				   "process %d handles its own system calls (system call user "
				   "dispatch): kymo can make none in it",
				   (int)inject->target->pid);
	}
	error = tracee_save_state(tracee);
	if (error) {
		tracee_restart_syscall_if_cut_short(tracee);
		tracee_detach(tracee);
		return set_process_gone_problem(inject);
	}
	error = map_remote_area(inject);
	if (!error && !write_remote_area(inject))
		error = -EIO;
	if (error)
		problem_set(inject->problem, error, "cannot allocate memory in process %d: %s",
			    (int)inject->target->pid, strerror(-error));
	else
		error = run_remote_code(inject, ret_result);
	if (error == -ETIMEDOUT)
		return error;
	if (!inject->thread_returned_itself) {
		unmap_remote_area(inject);
		tracee_restore_state(tracee);
		tracee_restart_syscall_if_cut_short(tracee);
	}
	tracee_detach(tracee);
	return error;
}

/* ---- the child that does it ---- */

static int run_injection(struct injection_job *inject, int *ret_result)
{
	char path[64];
	int error;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)inject->target->pid);
	inject->memory = open(path, O_RDWR | O_CLOEXEC);
	if (inject->memory < 0)
		return set_process_gone_problem(inject);
	error = find_injection_addresses(inject);
	if (!error)
		error = find_and_stop_safe_thread(inject);
	if (!error)
		error = call_on_stopped_thread(inject, ret_result);
	close(inject->memory);
	return error;
}

static _Noreturn void run_injection_child(const struct injection_target *target,
					  const struct injection_call *call,
					  struct injection_child_report *outcome)
{
	static struct injection_job inject;

	inject = (struct injection_job){
		.target = target, .call = call, .problem = &outcome->problem};
	outcome->error = run_injection(&inject, &outcome->result);
	_exit(0);
}

static void wait_for_child(pid_t child)
{
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

int inject_call_function(const struct injection_target *target, const struct injection_call *call,
			 int *ret_result, struct problem *problem)
{
	struct injection_child_report *outcome;
	sigset_t all, mask;
	int error;
	pid_t child;

	if (strlen(call->library) >= INJECTED_LIBRARY_PATH_MAX ||
	    strlen(call->function) >= INJECTED_FUNCTION_NAME_MAX ||
	    call->block_size > INJECT_ARGUMENT_BLOCK_SIZE_MAX)
		return problem_set(problem, -E2BIG, "too many settings to hand over");
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (outcome == MAP_FAILED)
		return problem_set(problem, -ENOMEM, "out of memory");
	outcome->error = -EIO;
	problem_set(&outcome->problem, 0, "attaching to process %d was interrupted",
		    (int)target->pid);
	/* The child finishes what it began, whatever signals come. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &mask);
	child = fork();
	if (!child)
		run_injection_child(target, call, outcome);
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
