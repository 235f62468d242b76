/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "unit/analysis/test_directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/open/open.h"

#include <cmocka.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int test_directory_create(void **state)
{
	char template[] = "/tmp/kymo-test-XXXXXX";

	if (!mkdtemp(template))
		return -1;
	*state = strdup(template);
	return *state ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
	(void)status;
	(void)type;
	(void)where;
	return remove(path);
}

int test_directory_remove(void **state)
{
	int result = nftw(*state, remove_one, 8, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return result;
}

struct session *test_session(const char *directory, const struct session_options *options)
{
	struct session_options names = {.symbol_cache_directory = "", .skip_symbolizing = true};
	struct session *session = NULL;
	struct problem problem;

	if (session_open(directory, options ? options : &names, &session, &problem) < 0 ||
	    session_symbolize(session, &problem) < 0)
		fail_msg("%s", problem.text);
	return session;
}

uint32_t test_frame(const struct session *session, const char *function)
{
	for (uint32_t i = 0; i < session->frame_count; i++) {
		if (strcmp(session->frames[i].function, function) == 0)
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

const char *test_path(const struct session *session, uint32_t node)
{
	static char path[4096];
	char rest[4096];

	path[0] = 0;
	for (; node != MODEL_ENTRY_INDEX_NONE; node = session->nodes[node].parent) {
		const struct model_frame *frame = &session->frames[session->nodes[node].frame];
		char name[300];

		if (frame->kind == FRAME_SYNTHETIC)
			snprintf(name, sizeof(name), "%s", frame->function);
		else
			snprintf(name, sizeof(name), "%s+%llx", frame->function,
				 (unsigned long long)frame->relative_pc);
		snprintf(rest, sizeof(rest), "%s", path);
		snprintf(path, sizeof(path), "%s%s%.3000s", name, *rest ? ";" : "", rest);
	}
	return path;
}
