/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See state.h.
 */
#include "libkymo-sdk/base/state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"
#include "core/base/ticks.h"

static _Atomic(const struct sdk_backend_callbacks *) state_backends;
static _Atomic int state_init_status, state_fini_status;
static _Atomic uint32_t state_configuring_client_id;
static _Atomic uint64_t state_handle_base, state_process_id;
static pthread_mutex_t state_mutex = PTHREAD_MUTEX_INITIALIZER;

int sdk_get_init_status(void)
{
	return atomic_load_explicit(&state_init_status, memory_order_acquire);
}

int sdk_get_fini_status(void)
{
	return atomic_load_explicit(&state_fini_status, memory_order_acquire);
}

void sdk_set_init_status(int status)
{
	atomic_store_explicit(&state_init_status, status, memory_order_release);
}

void sdk_set_fini_status(int status)
{
	atomic_store_explicit(&state_fini_status, status, memory_order_release);
}

uint32_t sdk_get_configuring_client_id(void)
{
	return atomic_load_explicit(&state_configuring_client_id, memory_order_acquire);
}

void sdk_set_configuring_client_id(uint32_t client)
{
	atomic_store_explicit(&state_configuring_client_id, client, memory_order_release);
}

uint64_t sdk_get_handle_base(void)
{
	uint64_t base = atomic_load_explicit(&state_handle_base, memory_order_relaxed), none = 0;

	if (base)
		return base;
	base = 256 +
	       (read_posix_clock_ns(CLOCK_MONOTONIC) / 1000 * 2654435761u + (uint64_t)getpid()) %
		       1000000;
	return atomic_compare_exchange_strong(&state_handle_base, &none, base) ? base : none;
}

uint64_t sdk_get_process_id(void)
{
	uint64_t process = atomic_load_explicit(&state_process_id, memory_order_relaxed);

	if (!process) {
		process = (uint64_t)getpid();
		atomic_store_explicit(&state_process_id, process, memory_order_relaxed);
	}
	return process;
}

void sdk_state_reset_after_fork(void)
{
	atomic_store_explicit(&state_process_id, 0, memory_order_relaxed);
}

void sdk_set_backend_callbacks(const struct sdk_backend_callbacks *backends)
{
	atomic_store_explicit(&state_backends, backends, memory_order_release);
}

void sdk_backends_flush(void)
{
	const struct sdk_backend_callbacks *backends =
		atomic_load_explicit(&state_backends, memory_order_acquire);

	if (backends)
		backends->flush();
}

void sdk_backends_notify_wanted_services_changed(void)
{
	const struct sdk_backend_callbacks *backends =
		atomic_load_explicit(&state_backends, memory_order_acquire);

	if (backends)
		backends->wanted();
}

void sdk_acquire_global_lock(void)
{
	pthread_mutex_lock(&state_mutex);
}

void sdk_release_global_lock(void)
{
	pthread_mutex_unlock(&state_mutex);
}

/* Upstream's names: fatal, error, warning, info, trace. */
static enum sdk_log_level read_log_level(void)
{
	const char *level = secure_getenv("ROCPROFILER_LOG_LEVEL");

	if (level && (!strcmp(level, "info") || !strcmp(level, "trace")))
		return SDK_LOG_INFO;
	if (level && !strcmp(level, "warning"))
		return SDK_LOG_WARNING;
	return SDK_LOG_ERROR;
}

void sdk_print_log_line(enum sdk_log_level level, const char *format, ...)
{
	static const char prefix[] = "kymo: tools: ";
	char text[1024], line[sizeof(text) * UTF8_REPLACEMENT_SIZE];
	va_list arguments;
	size_t length = sizeof(prefix) - 1;

	if (level > read_log_level())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	memcpy(line, prefix, length);
	length += utf8_copy_printable(text, strlen(text), line + length, sizeof(line) - length - 1);
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0)
		return;
}
