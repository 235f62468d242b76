/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_idle.h.
 */
#include "output/device_idle.h"

#include <errno.h>
#include <stdlib.h>

#include "output/device_lines.h"

static int compare_idle_lines(const void *left, const void *right)
{
	const struct device_idle_line *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static void add_row(struct device_idle_line *line, const struct gpu_idle_row *row)
{
	line->gaps += row->gaps;
	line->ns += row->ns;
	line->before_launch_ns += row->before_launch_ns;
	if (row->longest_ns > line->longest_ns)
		line->longest_ns = row->longest_ns;
}

int device_idle_build_lines(const struct session *session, const struct gpu_data *data,
			    struct device_idle_line **ret, size_t *ret_count)
{
	uint32_t none = session->frame_count, count = 0;
	struct device_idle_line *lines = calloc((size_t)none + 1, sizeof(*lines));

	if (lines == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < data->idle.count; i++) {
		const struct gpu_idle_row *row = &data->idle.rows[i];
		uint32_t process =
			gpu_find_process_in_session(session, &data->processes[row->process]);
		uint32_t node = gpu_find_node_of_launch_path(session, process, row->launch_path);
		uint32_t frame = node == MODEL_ENTRY_INDEX_NONE
					 ? node
					 : device_find_launching_frame(session, node);

		add_row(&lines[frame == MODEL_ENTRY_INDEX_NONE ? none : frame], row);
	}
	for (uint32_t i = 0; i <= none; i++) {
		struct device_idle_line line = lines[i];

		line.frame = i == none ? MODEL_ENTRY_INDEX_NONE : i;
		if (line.gaps != 0)
			lines[count++] = line;
	}
	qsort(lines, count, sizeof(*lines), compare_idle_lines);
	*ret = lines;
	*ret_count = count;
	return 0;
}
