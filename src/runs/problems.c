/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See problems.h.
 */
#include "runs/problems.h"

#include "analysis/gpu/gpu.h"
#include "console/message.h"
#include "output/incomplete/incomplete.h"

#define PROBLEMS_SHOWN_MAX 8

static void print_device_problems(const struct gpu_data *data)
{
	if (data == NULL)
		return;
	for (size_t i = 0; i < data->problem_count; i++)
		message_warning("%s", data->problems[i]);
}

static void print_loss(void *context, const char *text)
{
	(void)context;
	message_warning("not complete: %s", text);
}

void results_print_problems(const struct session *session)
{
	size_t shown = session->problem_count;

	print_device_problems(session_get_gpu_data(session));
	if (shown > PROBLEMS_SHOWN_MAX && message_get_verbosity() < 1)
		shown = PROBLEMS_SHOWN_MAX;
	for (size_t i = 0; i < shown; i++)
		message_warning("%s", session->problems[i]);
	if (shown < session->problem_count)
		message_warning("… and %zu more (-v shows them)", session->problem_count - shown);
	incomplete_visit_recording_losses(session, false, print_loss, NULL);
}
