/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The text file for node_exporter's textfile collector (NCCL_PROMETHEUS=FILE), written to a
 * temporary name and renamed, so that it is never read half written. Own thread only.
 */
#ifndef KYMO_NCCL_PROMETHEUS_H
#define KYMO_NCCL_PROMETHEUS_H

#include <stdbool.h>
#include <stdint.h>

/* When it is due, or `last`, at the end of the process. */
void prometheus_write_if_due(uint64_t now_ns, bool last);

#endif
