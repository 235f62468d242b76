/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Runs a program as if its caller had run it: the same process group, terminal, signal mask and
 * dispositions, limits, descriptors; kymo stays behind only to wait.
 */
#ifndef KYMO_LAUNCH_SUPERVISE_H
#define KYMO_LAUNCH_SUPERVISE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct supervised_program_end {
	pid_t pid;
	int exec_errno;  /* the program could not be executed; 0: it ran */
	int wait_status; /* of the program, when exec_errno is 0; -1: not known */
	int64_t user_ns, system_ns;
	uint64_t involuntary_switches;
	bool interrupted;      /* a SIGINT came */
	bool discards_results; /* a second one: write no results */
};

/* What is to be done with the child before it executes the program; NULL: nothing. For all programs
 * that are started from here on. */
void supervise_set_before_exec(void (*prepare)(void *context, pid_t pid), void *context);
/* Starts `path` and waits for its end. 0, or -errno when no process could be made. Not reentrant:
 * it owns the signal handlers. */
int supervise_run_program(const char *path, char *const arguments[], char *const environment[],
			  struct supervised_program_end *ret);
/* Once more: signals and timers of the new process are as they were before the first one. */
int supervise_run_program_again(const char *path, char *const arguments[],
				char *const environment[], struct supervised_program_end *ret);
/* Since the last program was started: a SIGINT came, or behind its end another signal that asks
 * kymo to end. */
bool supervise_was_interrupted(void);
/* Executes `path` in kymo's place, where none can be made beside it. As execvp(3): a file without a
 * known format is a shell script. Returns errno, when it cannot. */
int supervise_exec_in_place(const char *path, char *const arguments[], char *const environment[]);
/* Ends kymo as the program ended: the same status, or the same signal (without a core file). */
_Noreturn void supervise_exit_like_program(int wait_status);
/* While results are written: SIGINT ends kymo at once, as the program ended. */
void supervise_install_exit_on_interrupt(int wait_status, const char *message);

#endif
