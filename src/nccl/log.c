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

#define LOG_LINE_BYTES 1024

static nccl_logger nccl_logger_in_use;

void log_set_nccl_logger(nccl_logger logger)
{
	if (logger)
		__atomic_store_n(&nccl_logger_in_use, logger, __ATOMIC_RELEASE);
}

static void write_line_to_nccl_log(int level, const char *line)
{
	nccl_logger logger = __atomic_load_n(&nccl_logger_in_use, __ATOMIC_ACQUIRE);

	if (logger)
		logger(level, NCCL_LOG_PROFILE, "kymo", 0, "PROFILER/kymo: %s", line);
}

/* One write, so that lines of many ranks do not mix. */
static void write_line_to_standard_error(const char *line)
{
	char text[LOG_LINE_BYTES + 16];
	int length = snprintf(text, sizeof(text), "kymo: nccl: %s\n", line);

	while (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
		break;
}

void log_info_to_nccl(const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	write_line_to_nccl_log(NCCL_LOG_INFO, line);
}

void log_problem_to_nccl_and_stderr(const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	write_line_to_nccl_log(NCCL_LOG_WARN, line);
	write_line_to_standard_error(line);
}

void log_report_on_stderr(const char *format, ...)
{
	char line[LOG_LINE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	write_line_to_standard_error(line);
}
