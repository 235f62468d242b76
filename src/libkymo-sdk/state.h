/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the library is in its life, and the lock of everything that is rare.
 *
 * The lock is held for a few instructions, never while a function of a tool or of the program runs,
 * and never on the record path.
 */
#ifndef KYMO_LIBKYMO_SDK_STATE_H
#define KYMO_LIBKYMO_SDK_STATE_H

#include <stdbool.h>
#include <stdint.h>

#define SDK_EXPORT __attribute__((visibility("default")))

/* 0: not begun, -1: going on, 1: done. */
int sdk_init_status(void);
int sdk_fini_status(void);
void sdk_set_init_status(int status);
void sdk_set_fini_status(int status);

/* Tools may create contexts and configure services now. */
static inline bool sdk_is_configuring(void)
{
	return sdk_init_status() < 0 && !sdk_fini_status();
}

/* The client whose function configures now; 0: none. */
uint32_t sdk_configuring_client(void);
void sdk_set_configuring_client(uint32_t client);

/* Handles begin somewhere past 255, so that no tool takes them for small numbers. */
uint64_t sdk_handle_base(void);

/* The process id, which is the main thread's too. */
uint64_t sdk_process(void);
void sdk_state_forked(void);

void sdk_lock(void);
void sdk_unlock(void);

/* Makes backends hand over what is finished. */
void sdk_device_flush(void);
/* What is wanted has changed. */
void sdk_device_wanted(void);

/* One line on standard error, `kymo: tools: ` in front; errors, and what ROCPROFILER_LOG_LEVEL asks
 * for. */
enum sdk_log { SDK_LOG_ERROR, SDK_LOG_WARNING, SDK_LOG_INFO };
void sdk_say(enum sdk_log level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
