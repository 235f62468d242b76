/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See runtime_code.h. Most jitdumps replace nothing, and are forgotten at once.
 */
#include "analysis/runtime_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/jitmap.h"

const char *runtime_code_dump(const struct session *session, uint32_t process)
{
	const struct model_process *model = &session->processes[process];
	char name[64];

	snprintf(name, sizeof(name), "jit-%u.dump", model->pid);
	for (uint32_t i = 0; i < model->module_count; i++) {
		const struct model_module *module = &session->modules[model->first_module + i];

		if (strcmp(module->name, name) == 0)
			return module->path;
	}
	return NULL;
}

static int read_dump(struct session *session, uint32_t process, struct jitmap *map)
{
	const char *mapped = runtime_code_dump(session, process);
	char *kept;
	int result;

	if (asprintf(&kept, "%s/jit-%u.dump", session->directory, session->processes[process].pid) <
	    0)
		return -ENOMEM;
	result = jitmap_add_jitdump(map, kept);
	free(kept);
	if (result < 0 && result != -ENOMEM && mapped)
		result = jitmap_add_jitdump(map, mapped);
	return result == -ENOMEM ? result : jitmap_finish(map);
}

int runtime_code_load(struct session *session, uint32_t process)
{
	struct session_private *private = session_private(session);
	struct process_private *it = &private->processes[process];
	struct jitmap *map;
	uint64_t *changes = NULL;
	size_t count = 0;
	int result;

	it->by_time = it->module_map.overlaps;
	if (private->options.unresolved_only || jitmap_create(&map) < 0)
		return private->options.unresolved_only ? 0 : -ENOMEM;
	result = read_dump(session, process, map);
	if (result == 0)
		result = jitmap_changes(map, &changes, &count);
	for (size_t i = 0; i < count; i++)
		changes[i] -= (uint64_t)clock_map_monotonic_minus_boottime(&it->clock);
	if (result == 0 && count)
		result = module_map_add_times(&it->module_map, changes, count);
	free(changes);
	if (result == 0 && count) {
		it->jitmap = map;
		it->by_time = true;
	} else {
		jitmap_destroy(map);
	}
	return result;
}

bool runtime_code_is(const struct session *session, uint32_t module)
{
	return module == CALLTREE_NO_MODULE || strcmp(session->modules[module].path, "[jit]") == 0;
}

uint64_t runtime_code_since(const struct process_private *process, uint64_t address,
			    uint64_t time_ns)
{
	uint64_t monotonic =
		time_ns + (uint64_t)clock_map_monotonic_minus_boottime(&process->clock);
	/* Time 0 would ask for whatever was there last. */
	const struct jitmap_code *code =
		jitmap_find(process->jitmap, address, monotonic ? monotonic : 1);

	return code ? code->from_ns : 0;
}
