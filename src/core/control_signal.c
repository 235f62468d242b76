/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See control_signal.h.
 */
#include "core/control_signal.h"

#include "common/syscalls.h"
#include "core/base/alignment_check.h"
#include "core/process/interrupted_call.h"
#include "core/runtime.h"

#define SA_RESTORER_KERNEL     0x04000000 /* arch/x86/include/uapi/asm/signal.h */
#define SIGNAL_HANDLER_DEFAULT ((void *)0)

static _Atomic int installed_control_signal_number; /* 0: none */
static _Atomic int released_control_signal_number;  /* given up and not yet told */
/* For the handler; set before it is. */
static struct collection_control *collection_control_for_handler;
static struct program_signals *program_signals_for_handler;

static void handle_control_signal(int signal, siginfo_t *information, void *context)
{
	(void)signal;
	(void)information;
	alignment_check_end_in_handler(context);
	if (runtime_is_active())
		control_toggle_collection(collection_control_for_handler);
	interrupted_call_restart_if_by_us(program_signals_for_handler, context);
}

void control_signal_install_if_free(struct runtime *runtime)
{
	struct kernel_sigaction_layout current = {0},
				       ours = {.handler = (void *)handle_control_signal,
					       .flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK |
							SA_RESTORER_KERNEL,
					       .restorer = (void *)kymo_signal_return};
	int signal = runtime->options.regions.control_signal;

	if (!signal || call_rt_sigaction(signal, NULL, &current))
		return;
	collection_control_for_handler = &runtime->control;
	program_signals_for_handler = &runtime->signals;
	if (current.handler == (void *)handle_control_signal) { /* inherited by fork */
		atomic_store(&installed_control_signal_number, signal);
		return;
	}
	if (signal == runtime->signals.signal || current.handler != SIGNAL_HANDLER_DEFAULT) {
		process_record_write_notice(
			&runtime->records, SPOOL_NOTICE_CONFLICT, (uint64_t)signal,
			signal == runtime->signals.signal
				? "CONTROL_SIGNAL is not available: sampling uses this signal"
				: "CONTROL_SIGNAL is not available: the program uses it");
		return;
	}
	if (!call_rt_sigaction(signal, &ours, NULL))
		atomic_store(&installed_control_signal_number, signal);
}

void control_signal_restore_default(struct runtime *runtime)
{
	struct kernel_sigaction_layout standard = {.handler = SIGNAL_HANDLER_DEFAULT};
	int signal = atomic_exchange(&installed_control_signal_number, 0);

	(void)runtime;
	if (signal)
		call_rt_sigaction(signal, &standard, NULL);
}

bool control_signal_is_used_by_kymo(int signal)
{
	return signal && atomic_load_explicit(&installed_control_signal_number,
					      memory_order_relaxed) == signal;
}

void control_signal_release_to_program(void)
{
	int signal = atomic_exchange(&installed_control_signal_number, 0);

	if (signal)
		atomic_store(&released_control_signal_number, signal);
}

void control_signal_write_notice_if_lost(struct runtime *runtime)
{
	int signal = atomic_load_explicit(&released_control_signal_number, memory_order_relaxed)
			     ? atomic_exchange(&released_control_signal_number, 0)
			     : 0;

	if (signal)
		process_record_write_notice(
			&runtime->records, SPOOL_NOTICE_CONFLICT, (uint64_t)signal,
			"the program uses CONTROL_SIGNAL: kymo stopped using it");
}
