/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one list of kinds: an addition is a row here.
 */
#include "analysis/open/kinds.h"

#include "analysis/allocations/allocations.h"
#include "analysis/gpu/gpu.h"
#include "analysis/interpreted/interpreted.h"
#include "analysis/mpi/mpi.h"
#include "analysis/nccl/nccl.h"
#include "analysis/regions/calls.h"
#include "analysis/waits/waits.h"

const struct session_data_kind_operations
	*const session_data_kind_table[SESSION_DATA_KIND_COUNT + 1] = {
		&regions_data_kind_operations,
		&calls_data_kind_operations,
		&allocations_data_kind_operations,
		&nccl_data_kind_operations,
		&gpu_data_kind_operations,
		&interpreted_data_kind_operations,
		&mpi_data_kind_operations,
		&waits_data_kind_operations,
		NULL,
};
