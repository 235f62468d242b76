/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See state.h.
 */
#include "libkymo-sdk/state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/utf8.h"
#include "core/ticks.h"

static _Atomic int state_init, state_fini;
static _Atomic uint32_t state_client;
static _Atomic uint64_t state_handles, state_process;
static pthread_mutex_t state_mutex = PTHREAD_MUTEX_INITIALIZER;

int sdk_init_status(void)
{
	return atomic_load_explicit(&state_init, memory_order_acquire);
}

int sdk_fini_status(void)
{
	return atomic_load_explicit(&state_fini, memory_order_acquire);
}

void sdk_set_init_status(int status)
{
	atomic_store_explicit(&state_init, status, memory_order_release);
}

void sdk_set_fini_status(int status)
{
	atomic_store_explicit(&state_fini, status, memory_order_release);
}

uint32_t sdk_configuring_client(void)
{
	return atomic_load_explicit(&state_client, memory_order_acquire);
}

void sdk_set_configuring_client(uint32_t client)
{
	atomic_store_explicit(&state_client, client, memory_order_release);
}

uint64_t sdk_handle_base(void)
{
	uint64_t base = atomic_load_explicit(&state_handles, memory_order_relaxed), none = 0;

	if (base)
		return base;
	base = 256 + (ticks_clock_ns(CLOCK_MONOTONIC) / 1000 * 2654435761u + (uint64_t)getpid()) %
			     1000000;
	return atomic_compare_exchange_strong(&state_handles, &none, base) ? base : none;
}

uint64_t sdk_process(void)
{
	uint64_t process = atomic_load_explicit(&state_process, memory_order_relaxed);

	if (!process) {
		process = (uint64_t)getpid();
		atomic_store_explicit(&state_process, process, memory_order_relaxed);
	}
	return process;
}

void sdk_state_forked(void)
{
	atomic_store_explicit(&state_process, 0, memory_order_relaxed);
}

void sdk_lock(void)
{
	pthread_mutex_lock(&state_mutex);
}

void sdk_unlock(void)
{
	pthread_mutex_unlock(&state_mutex);
}

/* Upstream's names: fatal, error, warning, info, trace. */
static enum sdk_log state_level(void)
{
	const char *level = getenv("ROCPROFILER_LOG_LEVEL");

	if (level && (!strcmp(level, "info") || !strcmp(level, "trace")))
		return SDK_LOG_INFO;
	if (level && !strcmp(level, "warning"))
		return SDK_LOG_WARNING;
	return SDK_LOG_ERROR;
}

void sdk_say(enum sdk_log level, const char *format, ...)
{
	static const char prefix[] = "kymo: tools: ";
	char text[1024], line[sizeof(text) * UTF8_REPLACEMENT_SIZE];
	va_list arguments;
	size_t length = sizeof(prefix) - 1;

	if (level > state_level())
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	memcpy(line, prefix, length);
	length += utf8_printable(text, strlen(text), line + length, sizeof(line) - length - 1);
	line[length++] = '\n';
	if (write(STDERR_FILENO, line, length) < 0)
		return;
}
