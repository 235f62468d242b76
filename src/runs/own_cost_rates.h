/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What single things that kymo causes take on this machine: loading its libraries into an executed
 * image, copying its memory for a forked one, delivering a signal. They are measured once, after
 * the run, and launch.json keeps them; the results multiply them by how many there were
 * (analysis/own_cost.h).
 */
#ifndef KYMO_RUNS_OWN_COST_RATES_H
#define KYMO_RUNS_OWN_COST_RATES_H

#include "launch/launch.h"

/* The command's only argument, with which it returns at once. */
#define OWN_COST_RETURN_AT_ONCE_ARGUMENT "return-at-once"

/* What the delivery of a signal takes, measured now in half a millisecond; 0: not known. */
uint64_t own_cost_rates_measure_signal_ns(void);

/* Sets launch->load_ns, fork_ns and signal_ns; 0: not measured. `environment`: that of the program.
 * Takes 5 % of what the run took, 30 ms at least and 100 ms at most, where the run had ten images.
 */
void own_cost_rates_measure(struct launch *launch, char *const *environment);

#endif
