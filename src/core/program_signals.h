/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program's view of the signal that kymo uses.
 *
 * kymo takes one signal. The program must not notice: what it sets and asks with sigaction is kept
 * here and answered from here; what it blocks is remembered in its thread's block while the
 * kernel's mask keeps our signal open; waits for signals do not see ours. A signal of that number
 * which is not kymo's is handed to the program's action.
 *
 * The functions are what the wrappers of the library call; each does what the libc function of that
 * name promises. They are as thread- and signal-safe as their originals.
 */
#ifndef KYMO_CORE_PROGRAM_SIGNALS_H
#define KYMO_CORE_PROGRAM_SIGNALS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The kernel's struct sigaction on x86-64 (arch/x86/include/uapi/asm/signal.h), not libc's. */
struct kernel_action {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
};

struct program_signals {
	int signal; /* kymo's; 0 while not active */
	_Atomic uint32_t lock;
	struct kernel_action action; /* the program's, for kymo's signal */
	/* The program has a handler of its own for any asynchronous signal: then EINTR can be its
	 * business. */
	_Atomic uint32_t has_handlers;
};

/* Takes over `signal` with `handler`; remembers what was there. 0 or negative errno. */
int program_signals_take(struct program_signals *signals, int signal, void *handler);
/* Notes a handler that the program installs for any signal. */
void program_signals_note(struct program_signals *signals, int signal, const void *handler);
/* Notes the handlers that a program which runs already has, but for the one of `ours`. */
void program_signals_note_all(struct program_signals *signals, int ours);
/* Nothing of ours is sent any more: the program's own action again, unless one of our signals is
 * still `pending` and would do harm. */
void program_signals_give_back(struct program_signals *signals, bool pending);
/* sigaction() for kymo's signal. */
void program_signals_action(struct program_signals *signals, const struct sigaction *fresh,
			    struct sigaction *previous);
/* Runs the program's action for a signal of our number that is not ours. */
void program_signals_deliver(struct program_signals *signals, int signal, siginfo_t *information,
			     void *context);
/* An ignored signal stays ignored over exec: puts that in place when the program wants it; and back
 * when exec failed. */
void program_signals_prepare_exec(struct program_signals *signals);
void program_signals_take_again(struct program_signals *signals, void *handler);

/* Raw calls on kernel structures. */
long kernel_sigaction(int signal, const struct kernel_action *fresh,
		      struct kernel_action *previous);
long kernel_sigmask(int how, const uint64_t *fresh, uint64_t *previous);
/* Return path of our handlers: rt_sigreturn(2). Defined in assembly below the functions. */
void kymo_signal_return(void);

static inline uint64_t signal_bit(int signal)
{
	return 1ull << (signal - 1);
}

#endif
