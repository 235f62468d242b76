/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What launchers' variables mean.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/rank.h"

static void no_launcher_no_rank(void **state)
{
	char *nothing[] = {"PATH=/bin", "PMI_RANKS=3", "OMPI_COMM_WORLD_RANK", NULL};
	struct process_rank rank;

	(void)state;
	assert_false(rank_read_from_environment(nothing, &rank));
	assert_false(rank_read_from_environment(NULL, &rank));
}

static void expect(char *const *environment, uint32_t number, uint32_t size, const char *source)
{
	struct process_rank rank;

	assert_true(rank_read_from_environment(environment, &rank));
	assert_int_equal(rank.rank, number);
	assert_int_equal(rank.size, size);
	assert_string_equal(rank.source, source);
}

static void launchers_are_known(void **state)
{
	char *open_mpi[] = {"PMIX_RANK=1", "OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_RANK=1",
			    NULL};
	char *hydra[] = {"PMI_RANK=2", "PMI_SIZE=4", "PMI_FD=5", NULL};
	char *flux[] = {"FLUX_TASK_RANK=0", "FLUX_JOB_SIZE=2", NULL};
	char *pmix[] = {"PMIX_RANK=11", NULL};

	(void)state;
	expect(open_mpi, 1, 8, "OMPI_COMM_WORLD_RANK");
	expect(hydra, 2, 4, "PMI_RANK");
	expect(flux, 0, 2, "FLUX_TASK_RANK");
	expect(pmix, 11, 0, "PMIX_RANK");
}

static void slurm_batch_script_is_no_rank(void **state)
{
	char *script[] = {"SLURM_PROCID=0", "SLURM_JOB_ID=7", NULL};
	char *step[] = {"SLURM_PROCID=5", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=6", NULL};
	char *both[] = {"SLURM_PROCID=0", "SLURM_STEP_ID=0", "PMI_RANK=3", "PMI_SIZE=4", NULL};
	struct process_rank rank;

	(void)state;
	assert_false(rank_read_from_environment(script, &rank));
	expect(step, 5, 6, "SLURM_PROCID");
	expect(both, 3, 4, "PMI_RANK");
}

static void launchers_of_pytorch_are_known(void **state)
{
	char *torchrun[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",   "RANK=9",
			    "WORLD_SIZE=16",          "TORCHELASTIC_RUN_ID=none", NULL};
	char *deepspeed[] = {"SLURM_PROCID=0", "SLURM_STEP_ID=0", "RANK=3",
			     "LOCAL_RANK=3",   "WORLD_SIZE=4",    NULL};
	char *pod[] = {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=pod-0", NULL};
	struct process_rank rank;

	(void)state;
	expect(torchrun, 9, 16, "RANK");
	expect(deepspeed, 3, 4, "RANK");
	assert_false(rank_read_from_environment(pod, &rank));
}

static void garbage_is_not_believed(void **state)
{
	char *letters[] = {"PMI_RANK=two", "PMI_SIZE=4", NULL};
	char *empty[] = {"PMI_RANK=", NULL};
	char *large[] = {"PMI_RANK=99999999999999999999", NULL};
	char *beyond[] = {"PMI_RANK=4", "PMI_SIZE=4", NULL};
	struct process_rank rank;

	(void)state;
	assert_false(rank_read_from_environment(letters, &rank));
	assert_false(rank_read_from_environment(empty, &rank));
	assert_false(rank_read_from_environment(large, &rank));
	expect(beyond, 4, 0, "PMI_RANK");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_launcher_no_rank),
		cmocka_unit_test(launchers_are_known),
		cmocka_unit_test(slurm_batch_script_is_no_rank),
		cmocka_unit_test(launchers_of_pytorch_are_known),
		cmocka_unit_test(garbage_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
