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

int gpu_names_init(struct gpu_demangled_name_cache *names,
		   const struct gpu_records_of_process *process)
{
	names->process = process;
	names->demangled_names =
		calloc((size_t)process->string_count + 1, sizeof(*names->demangled_names));
	return names->demangled_names != NULL ? 0 : -ENOMEM;
}

void gpu_names_deinit(struct gpu_demangled_name_cache *names)
{
	for (uint32_t i = 0; names->demangled_names != NULL && i <= names->process->string_count;
	     i++)
		free(names->demangled_names[i]);
	free(names->demangled_names);
	names->demangled_names = NULL;
}

uint32_t gpu_names_get_kernel_name_string_id(const struct gpu_demangled_name_cache *names,
					     uint32_t shape)
{
	const struct gpu_records_of_process *process = names->process;
	uint32_t string = 0;

	if (shape <= process->shape_count && process->kernel_shape_by_id[shape] != NULL)
		string = process->kernel_shape_by_id[shape]->kernel;
	return string <= process->string_count ? string : 0;
}

const char *gpu_names_get_demangled_kernel_name(struct gpu_demangled_name_cache *names,
						uint32_t shape)
{
	uint32_t string = gpu_names_get_kernel_name_string_id(names, shape);
	const char *name = gpu_get_interned_string(names->process, string);

	if (names->demangled_names[string] == NULL)
		names->demangled_names[string] = gpu_demangle_name(name);
	return names->demangled_names[string] != NULL ? names->demangled_names[string] : name;
}

struct gpu_agent_label gpu_names_format_agent_label(const struct gpu_records_of_process *process,
						    uint32_t agent)
{
	struct gpu_agent_label label = {""};

	if (agent <= process->agent_count && process->agent_by_id[agent] != NULL)
		snprintf(label.text, sizeof(label.text), "Agent %u",
			 process->agent_by_id[agent]->node);
	return label;
}

struct gpu_counter_value_text gpu_format_counter_value(double value)
{
	struct gpu_counter_value_text number;

	if (!isfinite(value))
		number.text[0] = '\0';
	else if (value == rint(value) && fabs(value) < 9007199254740992.0)
		snprintf(number.text, sizeof(number.text), "%.0f", value + 0.0);
	else
		snprintf(number.text, sizeof(number.text), "%.15g", value);
	return number;
}
