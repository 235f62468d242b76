/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_row.h.
 */
#include "cmd/instrument_row.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static char *row_nameless(const struct instrument_row *row)
{
	const char *slash = strrchr(row->module, '/');
	char *name;

	return asprintf(&name, "[%s+0x%" PRIx64 "]", slash ? slash + 1 : row->module,
			row->function->vaddr) < 0
		       ? NULL
		       : name;
}

static void row_names(struct instrument_row *row, const char *file, uint32_t line, unsigned labels)
{
	if (row->mangled) {
		row->name = selection_signature(row->mangled, NULL, 0, 0);
		row->signature = selection_signature(row->mangled, file, line, labels);
		return;
	}
	row->name = row_nameless(row);
	row->signature = row->name ? selection_signature(row->name, file, line, labels) : NULL;
}

int instrument_row_init(const struct instrument_module *module, size_t index, unsigned labels,
			struct instrument_row *ret)
{
	const struct plan_function *function = &plan_functions(&module->plan)[index];
	const char *file;
	uint32_t line;
	size_t count;
	const struct selection_name *names =
		selection_names_at(module->names, function->vaddr, &count);

	*ret = (struct instrument_row){
		.function = function,
		.module = module->path,
		.mangled = count ? names->mangled : NULL,
		.linkage = count ? names->linkage : (unsigned)LINKAGE_NONE,
		.visibility = count ? names->visibility : (unsigned)VISIBILITY_NONE,
		.verdict = (enum selection_verdict)module->selection.verdicts[index],
		.mode = (enum plan_mode)module->selection.modes[index],
	};
	file = selection_sources_at(module->sources, index, &line);
	row_names(ret, file, line, labels);
	if (ret->name && ret->signature)
		return 0;
	instrument_row_deinit(ret);
	return -ENOMEM;
}

void instrument_row_deinit(struct instrument_row *row)
{
	free(row->name);
	free(row->signature);
	row->name = row->signature = NULL;
}

bool instrument_row_is_on(const struct instrument_row *row, enum instrument_print list)
{
	switch (list) {
	case PRINT_AVAILABLE:
		return row->function->stub != 0;
	case PRINT_INSTRUMENTED:
		return row->verdict == SELECTION_CHOSEN;
	case PRINT_EXCLUDED:
		return row->verdict != SELECTION_CHOSEN;
	case PRINT_OVERLAPPING:
		return row->verdict == SELECTION_OVERLAPPING ||
		       row->function->reason == PLAN_OVERLAPS;
	}
	return false;
}

const char *instrument_row_reason_word(const struct instrument_row *row)
{
	if (row->verdict == SELECTION_NOT_PATCHABLE)
		return plan_reason_word((enum plan_reason)row->function->reason);
	return selection_verdict_word(row->verdict);
}

const char *instrument_row_reason(const struct instrument_row *row)
{
	if (row->verdict == SELECTION_NOT_PATCHABLE)
		return plan_reason_text((enum plan_reason)row->function->reason);
	return selection_verdict_text(row->verdict);
}

double instrument_row_ratio(const struct instrument_row *row)
{
	return row->function->instructions
		       ? (double)row->function->size / row->function->instructions
		       : 0;
}
