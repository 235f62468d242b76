/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See log.h.
 */
#include "nccl/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 1024

static nccl_logger current;

void log_use(nccl_logger logger)
{
	if (logger)
		__atomic_store_n(&current, logger, __ATOMIC_RELEASE);
}

static void to_nccl(int level, const char *line)
{
	nccl_logger logger = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

	if (logger)
		logger(level, NCCL_LOG_PROFILE, "kymo", 0, "PROFILER/kymo: %s", line);
}

/* One write, so that lines of many ranks do not mix. */
static void to_error(const char *line)
{
	char text[LINE_SIZE + 16];
	int length = snprintf(text, sizeof(text), "kymo: nccl: %s\n", line);

	while (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
		break;
}

void log_info(const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	to_nccl(NCCL_LOG_INFO, line);
}

void log_problem(const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	to_nccl(NCCL_LOG_WARN, line);
	to_error(line);
}

void log_report(const char *format, ...)
{
	char line[LINE_SIZE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	to_error(line);
}
