/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the sums of a node of the call tree are of: sources of samples as the spool has them, and
 * what is made of other records.
 */
#ifndef KYMO_ANALYSIS_MODEL_SOURCE_H
#define KYMO_ANALYSIS_MODEL_SOURCE_H

#include "kymo/spool.h"

enum model_source {
	/* Work on devices, by the call path of its launch; weight: ns on the device, samples:
	 * kernels, copies and fills. In no sample. */
	MODEL_SOURCE_DEVICE = SPOOL_SOURCE_COUNT,
	MODEL_SOURCE_COUNT
};

#endif
