/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Steps by the launches: a kernel that is launched once in each step, found by the even distances,
 * in launches, between its launches.
 *
 * A loop within a step (the layers of a model) has even distances as well, but launches only some
 * of the kernels that the program launches again and again. So the smallest distance is taken
 * within which nearly all of them are launched; a larger one where that has clearly more of them.
 */
#ifndef KYMO_ANALYSIS_GPU_STEP_FIND_H
#define KYMO_ANALYSIS_GPU_STEP_FIND_H

#include <stddef.h>
#include <stdint.h>

#define STEP_FIND_LEAST_STEPS 5u

struct step_find_result {
	uint32_t id;            /* of the kernel that begins a step */
	size_t *starts;         /* positions of its launches; malloc'ed */
	size_t count, distance; /* distance: the usual one, in launches */
	double explained; /* share of the launches between the first and the last of them that is in
			     steps of the usual length */
};

/* `ids`: what was launched, in order; below `id_count`. 1: found, 0: nothing repeats, or -ENOMEM.
 */
int step_find(const uint32_t *ids, size_t count, uint32_t id_count, struct step_find_result *ret);

#endif
