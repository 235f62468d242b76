/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See rank.h. Variables of mpirun(1) of Open MPI, Hydra and PMIx (MPICH, Intel), MVAPICH, flux and
 * srun(1), and of launchers of PyTorch. Those of an inner launcher go before those of the one that
 * may be around it: torchrun(1) is started once a node, an MPI launcher by a batch system.
 */
#include "common/rank.h"

#include <stddef.h>

#include "common/array.h"

/* torchrun gives each worker RANK and TORCHELASTIC_RUN_ID; DeepSpeed's and Accelerate's launchers
 * give it RANK and LOCAL_RANK. RANK alone can be anything: Kubernetes operators number pods by it.
 * Slurm sets SLURM_PROCID for the batch script as well, which is no rank of anything: only in a
 * step of srun there is a SLURM_STEP_ID. */
static const struct launcher_rank_variables_row {
	const char *rank_variable, *size_variable, *required_variable;
} known_launchers[] = {
	{"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
	{"PMI_RANK", "PMI_SIZE", NULL},
	{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", NULL},
	{"PMIX_RANK", "PMIX_SIZE", NULL},
	{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
	{"FLUX_TASK_RANK", "FLUX_JOB_SIZE", NULL},
	{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
};

static const char *find_environment_value(char *const *environment, const char *name)
{
	for (; environment && *environment; environment++) {
		const char *at = *environment, *wanted = name;

		while (*wanted && *at == *wanted) {
			at++;
			wanted++;
		}
		if (!*wanted && *at == '=')
			return at + 1;
	}
	return NULL;
}

static bool parse_decimal(const char *text, uint32_t *ret)
{
	uint64_t value = 0;

	if (!text || !*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > UINT32_MAX)
			return false;
	}
	*ret = (uint32_t)value;
	return true;
}

bool rank_read_from_environment(char *const *environment, struct process_rank *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_launchers); i++) {
		const struct launcher_rank_variables_row *launcher = &known_launchers[i];

		if (launcher->required_variable &&
		    !find_environment_value(environment, launcher->required_variable))
			continue;
		if (!parse_decimal(find_environment_value(environment, launcher->rank_variable),
				   &ret->rank))
			continue;
		if (!parse_decimal(find_environment_value(environment, launcher->size_variable),
				   &ret->size) ||
		    ret->size <= ret->rank)
			ret->size = 0;
		ret->source = launcher->rank_variable;
		return true;
	}
	return false;
}
