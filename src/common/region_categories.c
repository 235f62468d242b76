/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See region_categories.h.
 */
#include "common/region_categories.h"

const struct region_category_description region_categories[REGION_CATEGORY_COUNT] = {
	[REGION_INSTRUMENTED] = {"host", "instrumented functions"},
	[REGION_USER] = {"user", "regions of the user API"},
	[REGION_PTHREAD] = {"pthread", "thread creation and waits for locks"},
	[REGION_PROCESS] = {"process", "fork, exec, spawn, waits for children, exit"},
	[REGION_SLEEP] = {"sleep", "sleeps"},
	[REGION_IO] = {"io", "reads, writes, polls, connections"},
	[REGION_LOADER] = {"loader", "dlopen and dlclose"},
	[REGION_MEMORY] = {"memory", "allocations"},
	[REGION_WRAP] = {"wrap", "functions named by the setting WRAP"},
	[REGION_MPI] = {"mpi", "MPI calls"},
	[REGION_NCCL] = {"nccl", "NCCL and RCCL calls"},
	[REGION_OMPT] = {"ompt", "OpenMP regions"},
	[REGION_KOKKOS] = {"kokkos", "Kokkos regions and kernels"},
	[REGION_PYTHON] = {"python", "Python functions"},
	[REGION_MARKER] = {"marker", "roctx and NVTX ranges"},
};
