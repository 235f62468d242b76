/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See runtime_code.h. Most jitdumps replace nothing, and are forgotten at once.
 */
#include "analysis/runtime_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/jit/jit.h"
#include "common/foreign_file.h"

const char *runtime_code_find_jitdump_path(const struct session *session, uint32_t process)
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

static int read_jitdump_of_process(struct session *session, uint32_t process, struct jitmap *map)
{
	const struct foreign_open_policy own =
		foreign_make_policy_for_owner(session_get_process_owner_uid(session, process));
	const char *mapped = runtime_code_find_jitdump_path(session, process);
	char *kept;
	int result;

	if (asprintf(&kept, "%s/jit-%u.dump", session->directory, session->processes[process].pid) <
	    0)
		return -ENOMEM;
	result = jitmap_add_jitdump(map, kept, &foreign_policy_of_result_files);
	free(kept);
	if (result < 0 && result != -ENOMEM && mapped)
		result = jitmap_add_jitdump(map, mapped, &own);
	return result == -ENOMEM ? result : jitmap_sort_entries(map);
}

int runtime_code_load_jitdump(struct session *session, uint32_t process)
{
	struct session_private *private = session_get_private(session);
	struct process_private *it = &private->processes[process];
	struct jitmap *map;
	uint64_t *changes = NULL;
	size_t count = 0;
	int result;

	it->code_depends_on_time = it->module_map.overlaps;
	if (private->options.skip_symbolizing || jitmap_create(&map) < 0)
		return private->options.skip_symbolizing ? 0 : -ENOMEM;
	result = read_jitdump_of_process(session, process, map);
	if (result == 0)
		result = jitmap_list_address_reuse_times(map, &changes, &count);
	for (size_t i = 0; i < count; i++)
		changes[i] -= (uint64_t)clock_map_get_monotonic_minus_boottime(&it->clock);
	if (result == 0 && count)
		result = module_map_add_change_times(&it->module_map, changes, count);
	free(changes);
	if (result == 0 && count) {
		it->jitmap = map;
		it->code_depends_on_time = true;
	} else {
		jitmap_destroy(map);
	}
	return result;
}

bool module_is_jit_code_or_none(const struct session *session, uint32_t module)
{
	return module == CALLTREE_NO_MODULE || strcmp(session->modules[module].path, "[jit]") == 0;
}

uint64_t runtime_code_find_code_creation_ns(const struct process_private *process, uint64_t address,
					    uint64_t time_ns)
{
	uint64_t monotonic =
		time_ns + (uint64_t)clock_map_get_monotonic_minus_boottime(&process->clock);
	/* Time 0 would ask for whatever was there last. */
	const struct jitmap_code *code =
		jitmap_find_code(process->jitmap, address, monotonic ? monotonic : 1);

	return code ? code->from_ns : 0;
}
