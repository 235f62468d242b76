/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See control_signal.h.
 */
#include "core/control_signal.h"

#include "common/syscalls.h"
#include "core/interrupted_call.h"
#include "core/runtime.h"

#define SA_RESTORER_KERNEL 0x04000000 /* arch/x86/include/uapi/asm/signal.h */
#define HANDLER_DEFAULT    ((void *)0)

static _Atomic int held; /* 0: none */
static _Atomic int lost; /* given up and not yet told */

static void handle(int signal, siginfo_t *information, void *context)
{
	(void)signal;
	(void)information;
	if (runtime_active())
		control_toggle();
	interrupted_call_restart(&kymo_runtime.signals, context);
}

void control_signal_take(struct runtime *runtime)
{
	struct kernel_action current = {0}, ours = {.handler = (void *)handle,
						    .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK |
							     SA_RESTORER_KERNEL,
						    .restorer = (void *)kymo_signal_return};
	int signal = runtime->options.regions.control_signal;

	if (!signal || kernel_sigaction(signal, NULL, &current))
		return;
	if (current.handler == (void *)handle) { /* inherited by fork */
		atomic_store(&held, signal);
		return;
	}
	if (signal == runtime->signals.signal || current.handler != HANDLER_DEFAULT) {
		track_notice(&runtime->track, SPOOL_NOTICE_CONFLICT, (uint64_t)signal,
			     signal == runtime->signals.signal
				     ? "CONTROL_SIGNAL is not available: samples are taken by it"
				     : "CONTROL_SIGNAL is not available: the program uses it");
		return;
	}
	if (!kernel_sigaction(signal, &ours, NULL))
		atomic_store(&held, signal);
}

void control_signal_give_back(struct runtime *runtime)
{
	struct kernel_action standard = {.handler = HANDLER_DEFAULT};
	int signal = atomic_exchange(&held, 0);

	(void)runtime;
	if (signal)
		kernel_sigaction(signal, &standard, NULL);
}

bool control_signal_is(int signal)
{
	return signal && atomic_load_explicit(&held, memory_order_relaxed) == signal;
}

void control_signal_give_up(void)
{
	int signal = atomic_exchange(&held, 0);

	if (signal)
		atomic_store(&lost, signal);
}

void control_signal_tell(struct runtime *runtime)
{
	int signal =
		atomic_load_explicit(&lost, memory_order_relaxed) ? atomic_exchange(&lost, 0) : 0;

	if (signal)
		track_notice(&runtime->track, SPOOL_NOTICE_CONFLICT, (uint64_t)signal,
			     "the program uses CONTROL_SIGNAL itself: kymo gave it up");
}
