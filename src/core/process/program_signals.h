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
#ifndef KYMO_CORE_PROCESS_PROGRAM_SIGNALS_H
#define KYMO_CORE_PROCESS_PROGRAM_SIGNALS_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The kernel's struct sigaction on x86-64 (arch/x86/include/uapi/asm/signal.h), not libc's. */
struct kernel_sigaction_layout {
	void *handler;
	uint64_t flags;
	void *restorer;
	uint64_t mask;
};

struct program_signals {
	int signal; /* kymo's; 0 while not active */
	_Atomic uint32_t lock;
	struct kernel_sigaction_layout program_action; /* the program's, for kymo's signal */
	/* The program has a handler of its own for any asynchronous signal: then EINTR can be its
	 * business. */
	_Atomic uint32_t has_program_handlers;
	_Atomic uint64_t
		blocked_in_handlers_mask; /* the signals that its handlers block while they run */
	/* Its asynchronous signals with handlers on alternate stacks, and with others. */
	_Atomic uint64_t alternate_stack_mask, own_stack_mask;
};

/* Takes over `signal` with `handler`; remembers what was there. 0 or negative errno. */
int program_signals_take_over_signal(struct program_signals *signals, int signal, void *handler);
/* Notes a handler that the program installs for any signal, with its SA_* flags. Where all handlers
 * of asynchronous signals are on alternate stacks, ours goes there as well: such programs (Erlang,
 * Go) keep their stacks in the midst of other data, with no room for a signal's frame. */
void program_signals_note_has_handler(struct program_signals *signals, int signal,
				      const void *handler, uint64_t flags);
/* Notes the signals that a handler of the program's blocks while it runs. */
void program_signals_add_handler_mask(struct program_signals *signals, const void *handler,
				      uint64_t mask);
/* Notes the handlers that a program which runs already has, but for the one of `ours`. */
void program_signals_note_all_handlers(struct program_signals *signals, int ours);
/* Nothing of ours is sent any more: the program's own action again, unless one of our signals is
 * still `pending` and would do harm. */
void program_signals_try_restore_action(struct program_signals *signals, bool pending);
/* sigaction() for kymo's signal. */
void program_signals_emulate_sigaction(struct program_signals *signals,
				       const struct sigaction *fresh, struct sigaction *previous);
/* Runs the program's action for a signal of our number that is not ours. */
void program_signals_run_program_action(struct program_signals *signals, int signal,
					siginfo_t *information, void *context);
/* An ignored signal stays ignored over exec: puts that in place when the program wants it; and back
 * when exec failed. */
void program_signals_apply_ignore_at_exec(struct program_signals *signals);
void program_signals_reinstall_our_handler(struct program_signals *signals, void *handler);

/* Raw calls on kernel structures. */
long call_rt_sigaction(int signal, const struct kernel_sigaction_layout *fresh,
		       struct kernel_sigaction_layout *previous);
long call_rt_sigprocmask(int how, const uint64_t *fresh, uint64_t *previous);
/* Return path of our handlers: rt_sigreturn(2). Defined in assembly below the functions. */
void kymo_signal_return(void);

static inline uint64_t signal_to_mask_bit(int signal)
{
	return 1ull << (signal - 1);
}

#endif
