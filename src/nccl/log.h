/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the plugin says: one line, through NCCL's own logger, which prints it where NCCL_DEBUG asks
 * for it; problems on standard error as well, by one write. Not in callbacks other than init.
 */
#ifndef KYMO_NCCL_LOG_H
#define KYMO_NCCL_LOG_H

#include "nccl/api.h"

/* NULL before API version 4. */
void log_set_nccl_logger(nccl_logger logger);
__attribute__((format(printf, 1, 2))) void log_info_to_nccl(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_problem_to_nccl_and_stderr(const char *format, ...);
/* To standard error alone: from the own thread, where NCCL's logger may be locked by who hangs. */
__attribute__((format(printf, 1, 2))) void log_report_on_stderr(const char *format, ...);

#endif
