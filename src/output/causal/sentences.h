/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Predictions in words, and the targets of which there are none.
 */
#ifndef KYMO_OUTPUT_CAUSAL_SENTENCES_H
#define KYMO_OUTPUT_CAUSAL_SENTENCES_H

#include <stdio.h>

#include "analysis/causal/causal.h"

/* One sentence for each of the first `limit` predictions that the data support: "Make parse() twice
 * as fast: a visit takes 18.0 % less time (14.1 to 22.3)." */
void causal_sentences_write(const struct causal_data *data,
			    const struct causal_prediction *predictions, size_t count, size_t limit,
			    FILE *stream);

/* Targets that had some of the time and no experiment: at most `limit` of them by name. */
void causal_sentences_write_untried_targets(const struct causal_data *data,
					    const struct causal_fit_result *result, size_t limit,
					    FILE *stream);

#endif
