/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See row.h.
 */
#include "planning/row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *row_format_address_name(const struct function_list_row *row)
{
	const char *slash = strrchr(row->module, '/');
	char *name;

	return asprintf(&name, "[%s+0x%" PRIx64 "]", slash ? slash + 1 : row->module,
			row->function->vaddr) < 0
		       ? NULL
		       : name;
}

static void row_format_name_and_signature(struct function_list_row *row, const char *file,
					  uint32_t line, unsigned labels)
{
	if (row->mangled_name) {
		row->name = selection_format_signature(row->mangled_name, NULL, 0, 0);
		row->signature = selection_format_signature(row->mangled_name, file, line, labels);
		return;
	}
	row->name = row_format_address_name(row);
	row->signature =
		row->name ? selection_format_signature(row->name, file, line, labels) : NULL;
}

int function_list_row_init(const struct planned_module *module, size_t index, unsigned labels,
			   struct function_list_row *ret)
{
	const struct plan_function *function = &plan_get_functions(&module->plan)[index];
	const char *file;
	uint32_t line;
	size_t count;
	const struct selection_symbol_name *names =
		selection_symbol_names_find_at(module->names, function->vaddr, &count);

	*ret = (struct function_list_row){
		.function = function,
		.module = module->path,
		.mangled_name = count ? names->mangled : NULL,
		.linkage = count ? names->linkage : (unsigned)LINKAGE_NONE,
		.visibility = count ? names->visibility : (unsigned)VISIBILITY_NONE,
		.verdict = (enum selection_verdict)module->selection.verdicts[index],
		.mode = (enum plan_mode)module->selection.modes[index],
	};
	file = selection_source_lines_get_file_line(module->sources, index, &line);
	row_format_name_and_signature(ret, file, line, labels);
	if (ret->name && ret->signature)
		return 0;
	function_list_row_deinit(ret);
	return -ENOMEM;
}

void function_list_row_deinit(struct function_list_row *row)
{
	free(row->name);
	free(row->signature);
	row->name = row->signature = NULL;
}

bool function_list_row_is_in_list(const struct function_list_row *row, enum function_list_kind list)
{
	switch (list) {
	case PRINT_AVAILABLE:
		return row->function->stub != 0;
	case PRINT_INSTRUMENTED:
		return row->verdict == SELECTION_VERDICT_CHOSEN;
	case PRINT_EXCLUDED:
		return row->verdict != SELECTION_VERDICT_CHOSEN;
	case PRINT_OVERLAPPING:
		return row->verdict == SELECTION_VERDICT_OVERLAPPING ||
		       row->function->reason == PLAN_OVERLAPS;
	}
	return false;
}

const char *function_list_row_get_reason_word(const struct function_list_row *row)
{
	if (row->verdict == SELECTION_VERDICT_NOT_PATCHABLE)
		return plan_reason_to_word((enum plan_reason)row->function->reason);
	return selection_verdict_to_word(row->verdict);
}

const char *function_list_row_get_reason_text(const struct function_list_row *row)
{
	if (row->verdict == SELECTION_VERDICT_NOT_PATCHABLE)
		return plan_reason_to_text((enum plan_reason)row->function->reason);
	return selection_verdict_to_text(row->verdict);
}

double function_list_row_get_bytes_per_insn(const struct function_list_row *row)
{
	return row->function->instructions
		       ? (double)row->function->size / row->function->instructions
		       : 0;
}
