/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the library is in its life, and the lock of everything that is rare.
 *
 * The lock is held for a few instructions, never while a function of a tool or of the program runs,
 * and never on the record path.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_STATE_H
#define KYMO_LIBKYMO_SDK_BASE_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define SDK_EXPORT __attribute__((visibility("default")))

/* 0: not begun, -1: going on, 1: done. */
int sdk_get_init_status(void);
int sdk_get_fini_status(void);
void sdk_set_init_status(int status);
void sdk_set_fini_status(int status);

/* Tools may create contexts and configure services now. */
static inline bool sdk_is_configuration_open(void)
{
	return sdk_get_init_status() < 0 && !sdk_get_fini_status();
}

/* The client whose function configures now; 0: none. */
uint32_t sdk_get_configuring_client_id(void);
void sdk_set_configuring_client_id(uint32_t client);

/* Handles begin somewhere past 255, so that no tool takes them for small numbers. */
uint64_t sdk_get_handle_base(void);

/* The process id, which is the main thread's too. */
uint64_t sdk_get_process_id(void);
void sdk_state_reset_after_fork(void);

void sdk_acquire_global_lock(void);
void sdk_release_global_lock(void);

/* What the rest of the library asks of all backends together; registered by the room that knows
 * them (runtimes/device_sink.c) before anything is recorded. */
struct sdk_backend_callbacks {
	void (*flush)(void);  /* hand over what is finished */
	void (*wanted)(void); /* what contexts want has changed */
};

void sdk_set_backend_callbacks(const struct sdk_backend_callbacks *backends);
void sdk_backends_flush(void);
void sdk_backends_notify_wanted_services_changed(void);

/* One line on standard error, `kymo: tools: ` in front; errors, and what ROCPROFILER_LOG_LEVEL asks
 * for. */
enum sdk_log_level { SDK_LOG_ERROR, SDK_LOG_WARNING, SDK_LOG_INFO };
void sdk_print_log_line(enum sdk_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
