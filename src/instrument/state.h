/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the recording of instrumented calls needs of the collector: where records go, who writes
 * them, and how the user wants it. Set before anything is instrumented.
 */
#ifndef KYMO_INSTRUMENT_STATE_H
#define KYMO_INSTRUMENT_STATE_H

#include "core/runtime.h"

struct instrument_collector_object_pointers {
	struct spool_writer *spool;
	struct process_records *records; /* background thread only */
	struct background_state *background;
	struct threads *threads;
	struct loaded_modules *modules;
	const struct sampler *sampler; /* ticks and the growth of chunks */
	const struct instrument_options *options;
};

extern struct instrument_collector_object_pointers kymo_instrument;

#endif
