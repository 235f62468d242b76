/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the processes of a session use of the machine, seen from outside.
 */
#ifndef KYMO_EXPERIMENTS_LOAD_H
#define KYMO_EXPERIMENTS_LOAD_H

#include <stdint.h>

struct causal_session_usage {
	uint64_t cpu_ns;               /* of all processes that live */
	uint64_t involuntary_switches; /* of their first threads: reading all would take long */
	uint64_t run_queue_wait_ns;    /* that threads could run and waited for a processor */
	uint64_t stolen_ns; /* of all processors, by the hypervisor, since the machine started */
};

/* Reads the processes that have spool files in `session`. */
void causal_session_read_usage(const char *session, struct causal_session_usage *ret);

#endif
