/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Rules about what is in a function: which functions it calls, how its instructions read.
 */
#ifndef KYMO_BINARY_SELECTION_CODE_H
#define KYMO_BINARY_SELECTION_CODE_H

#include "binary/selection/names.h"
#include "binary/selection/pattern.h"
#include "kymo/plan.h"

struct selection_code_rules;

/* `callee` and `text` are the expressions; either may be not given. *ret is NULL when neither is. 0
 * or -ENOMEM. */
int selection_code_rules_create(const struct elf_file *file,
				const struct selection_symbol_names *names,
				const struct selection_pattern *callee,
				const struct selection_pattern *text,
				struct selection_code_rules **ret);
void selection_code_rules_destroy(struct selection_code_rules *code);

/* Does it call, or end in a jump to, a function whose name matches `callee`? Direct calls, calls
 * through the procedure linkage table and through words that the loader fills. False for NULL. */
bool selection_calls_matching_callee(struct selection_code_rules *code,
				     const struct plan_function *function);
/* Does one of its instructions, in Intel's syntax ("mov rax, [rbp-0x08]"), match `text`? */
bool selection_instruction_text_matches(struct selection_code_rules *code,
					const struct plan_function *function);
/* Can instructions be read at all, or was kymo built without Zydis? */
bool selection_is_built_with_disassembler(void);

#endif
