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
void log_use(nccl_logger logger);
__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_problem(const char *format, ...);
/* To standard error alone: from the own thread, where NCCL's logger may be locked by who hangs. */
__attribute__((format(printf, 1, 2))) void log_report(const char *format, ...);

#endif
