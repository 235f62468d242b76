/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See gpu_names.h.
 */
#include "output/gpu_names.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int gpu_names_init(struct gpu_names *names, const struct gpu_process *process)
{
	names->process = process;
	names->plain = calloc((size_t)process->string_count + 1, sizeof(*names->plain));
	return names->plain != NULL ? 0 : -ENOMEM;
}

void gpu_names_deinit(struct gpu_names *names)
{
	for (uint32_t i = 0; names->plain != NULL && i <= names->process->string_count; i++)
		free(names->plain[i]);
	free(names->plain);
	names->plain = NULL;
}

uint32_t gpu_names_kernel_id(const struct gpu_names *names, uint32_t shape)
{
	const struct gpu_process *process = names->process;
	uint32_t string = 0;

	if (shape <= process->shape_count && process->shapes[shape] != NULL)
		string = process->shapes[shape]->kernel;
	return string <= process->string_count ? string : 0;
}

const char *gpu_names_kernel(struct gpu_names *names, uint32_t shape)
{
	uint32_t string = gpu_names_kernel_id(names, shape);
	const char *name = gpu_string(names->process, string);

	if (names->plain[string] == NULL)
		names->plain[string] = gpu_demangled(name);
	return names->plain[string] != NULL ? names->plain[string] : name;
}

struct gpu_agent_label gpu_names_agent(const struct gpu_process *process, uint32_t agent)
{
	struct gpu_agent_label label = {""};

	if (agent <= process->agent_count && process->agents[agent] != NULL)
		snprintf(label.text, sizeof(label.text), "Agent %u", process->agents[agent]->node);
	return label;
}

struct gpu_number gpu_number(double value)
{
	struct gpu_number number;

	if (!isfinite(value))
		number.text[0] = '\0';
	else if (value == rint(value) && fabs(value) < 9007199254740992.0)
		snprintf(number.text, sizeof(number.text), "%.0f", value + 0.0);
	else
		snprintf(number.text, sizeof(number.text), "%.15g", value);
	return number;
}
