/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls from Python 3.12 on: a tool of sys.monitoring.
 */
#ifndef KYMO_PYTHON_MONITORING_H
#define KYMO_PYTHON_MONITORING_H

#include <stdbool.h>

/* In the current interpreter, whose lock the thread holds. */
bool python_monitoring_install(bool records_builtins);

#endif
