/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All files of a session, and their sums; see gpu.h.
 */
#include "analysis/gpu/gpu.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/arena.h"
#include "analysis/gpu/counts.h"
#include "analysis/record_file.h"
#include "analysis/session_private.h"
#include "binary/demangle.h"

char *gpu_demangle_name(const char *name)
{
	return demangle(name);
}

/* The image of the process that was running when the file was begun. */
uint32_t gpu_find_process_in_session(const struct session *session,
				     const struct gpu_records_of_process *process)
{
	uint32_t found = MODEL_ENTRY_INDEX_NONE;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *model = &session->processes[i];

		if (model->pid == process->header.pid &&
		    model->process_start == process->header.process_start &&
		    (found == MODEL_ENTRY_INDEX_NONE ||
		     model->start_ns <= process->header.start_boottime_ns))
			found = i;
	}
	return found;
}

int launch_path_compare_by_number(const void *left, const void *right)
{
	const struct launch_path *a = left, *b = right;

	return a->number < b->number ? -1 : a->number > b->number;
}

struct launch_path *launch_path_list_find(const struct launch_path_list *list, uint64_t number)
{
	struct launch_path wanted = {.number = number};

	return list->count == 0 ? NULL
				: bsearch(&wanted, list->paths, list->count, sizeof(*list->paths),
					  launch_path_compare_by_number);
}

uint32_t gpu_find_node_of_launch_path(const struct session *session, uint32_t process,
				      uint32_t launch_path)
{
	const struct launch_path_list *lists =
		session_find_kind_data_of_processes(session, GPU_DATA_KIND_NAME);
	const struct launch_path *path = NULL;

	if (lists != NULL && process != MODEL_ENTRY_INDEX_NONE &&
	    session_get_private(session)->session_node_by_tree_node != NULL)
		path = launch_path_list_find(&lists[process], launch_path);
	return path == NULL || !path->is_in_tree
		       ? MODEL_ENTRY_INDEX_NONE
		       : session_get_private(session)->session_node_by_tree_node[path->node];
}

static int add_problem_line(struct gpu_data *data, const char *path, const char *text)
{
	char **larger = realloc(data->problems, (data->problem_count + 1) * sizeof(*larger));

	if (larger == NULL)
		return -ENOMEM;
	data->problems = larger;
	if (asprintf(&data->problems[data->problem_count], "%s%s%s", path,
		     *path != '\0' ? ": " : "", text) < 0)
		return -ENOMEM;
	data->problem_count++;
	return 0;
}

/* The bytes of the whole file, malloc'ed; negative errno. A file that shrinks meanwhile is a
 * shorter one. */
static ssize_t read_whole_file(const char *path, uint8_t **ret)
{
	struct problem problem;
	int descriptor;
	uint64_t length;
	ssize_t got = record_file_open_and_get_size(path, &descriptor, &length, &problem);

	*ret = got == 0 ? malloc((size_t)length + 1) : NULL;
	if (*ret != NULL)
		got = record_file_read_at_offset(descriptor, *ret, (size_t)length, 0);
	else if (got == 0)
		got = -ENOMEM;
	if (descriptor >= 0)
		close(descriptor);
	if (got < 0) {
		free(*ret);
		*ret = NULL;
	}
	return got;
}

int gpu_process_read_file(const char *path, struct gpu_records_of_process *ret)
{
	uint8_t *bytes;
	ssize_t size = read_whole_file(path, &bytes);

	return size < 0 ? (int)size : gpu_process_parse_bytes(bytes, (size_t)size, ret);
}

int gpu_read_file_header(const char *path, struct gpu_file_header *ret)
{
	struct problem problem;
	uint64_t length;
	int descriptor = -1;
	ssize_t got = record_file_open_and_get_size(path, &descriptor, &length, &problem);

	if (got == 0)
		got = record_file_read_at_offset(descriptor, ret, sizeof(*ret), 0);
	if (descriptor >= 0)
		close(descriptor);
	if (got < 0)
		return (int)got;
	return (size_t)got == sizeof(*ret) && memcmp(ret->magic, GPU_MAGIC, sizeof(ret->magic)) == 0
		       ? 0
		       : -EBADMSG;
}

static int read_and_add_gpu_file(struct gpu_data *data, size_t *capacity, const char *path)
{
	struct gpu_records_of_process process;
	int result = gpu_process_read_file(path, &process);

	if (result == -ENOMEM)
		return result;
	if (result != 0)
		return add_problem_line(
			data, path,
			result == -EBADMSG ? "not a file of kymo's records of devices"
			: result == -EPROTO
				? "records of devices in a version that this kymo cannot read"
				: strerror(-result));
	if (array_reserve_one_more((void **)&data->processes, capacity, data->process_count,
				   sizeof(*data->processes)) < 0) {
		gpu_process_deinit(&process);
		return -ENOMEM;
	}
	process.path = strdup(path);
	data->processes[data->process_count++] = process;
	return 0;
}

static int read_all_gpu_files(struct gpu_data *data, const char *directory)
{
	DIR *folder = opendir(directory);
	size_t capacity = 0;
	struct dirent *entry;
	int result = 0;

	while (result == 0 && folder != NULL && (entry = readdir(folder)) != NULL) {
		size_t length = strlen(entry->d_name);
		char *path;

		if (length <= 4 || strcmp(entry->d_name + length - 4, ".gpu") != 0)
			continue;
		if (asprintf(&path, "%s/%s", directory, entry->d_name) < 0) {
			result = -ENOMEM;
			break;
		}
		result = read_and_add_gpu_file(data, &capacity, path);
		free(path);
	}
	if (folder != NULL)
		closedir(folder);
	return result;
}

/* ---- sums ---- */

struct gpu_process_summing_state {
	struct gpu_data *data;
	struct gpu_records_of_process *process;
	struct gpu_kernel_row *kernel_row_by_shape_id; /* by id; 0: unknown */
	int error;
};

static void add_kernel_to_sums(struct gpu_process_summing_state *sums,
			       const struct gpu_kernel *kernel)
{
	uint32_t id = kernel->head.id <= sums->process->shape_count ? kernel->head.id : 0;
	struct gpu_kernel_row *row = &sums->kernel_row_by_shape_id[id];

	sums->data->kernel_record_count++;
	if (kernel->start == 0) {
		row->incomplete++;
		return;
	}
	if (row->count == 0 || kernel->duration < row->minimum_ns)
		row->minimum_ns = kernel->duration;
	if (kernel->duration > row->maximum_ns)
		row->maximum_ns = kernel->duration;
	row->count++;
	row->total_ns += kernel->duration;
}

static void add_copy_to_sums(struct gpu_process_summing_state *sums, const struct gpu_copy *copy)
{
	uint32_t direction = copy->head.id < GPU_DIRECTION_COUNT ? copy->head.id : 0;
	struct gpu_copy_direction_sums *row = &sums->data->copy_sums_by_direction[direction];

	sums->data->copy_record_count++;
	row->count++;
	row->bytes += copy->bytes;
	row->total_ns += copy->duration;
}

static int add_record_to_sums(const struct gpu_record_head *head, void *context)
{
	struct gpu_process_summing_state *sums = context;

	switch (head->kind) {
	case GPU_RECORD_KERNEL:
		add_kernel_to_sums(sums, (const struct gpu_kernel *)head);
		break;
	case GPU_RECORD_COPY:
		add_copy_to_sums(sums, (const struct gpu_copy *)head);
		break;
	case GPU_RECORD_CALL:
		sums->data->call_record_count++;
		break;
	case GPU_RECORD_METRIC:
		sums->data->metric_record_count++;
		break;
	case GPU_RECORD_NOTICE:
		return add_problem_line(sums->data, "", ((const struct gpu_notice *)head)->text);
	default:
		break;
	}
	return 0;
}

static int append_kernel_rows(struct gpu_process_summing_state *sums, size_t *capacity)
{
	struct gpu_data *data = sums->data;
	const struct gpu_records_of_process *process = sums->process;

	for (uint32_t id = 0; id <= process->shape_count; id++) {
		struct gpu_kernel_row *row = &sums->kernel_row_by_shape_id[id];
		const char *name = gpu_get_kernel_name_of_shape(process, id);
		const struct gpu_shape *shape = process->kernel_shape_by_id[id];

		if (row->count == 0 && row->incomplete == 0)
			continue;
		if (array_reserve_one_more((void **)&data->kernels, capacity, data->kernel_count,
					   sizeof(*data->kernels)) < 0)
			return -ENOMEM;
		row->name = gpu_demangle_name(name);
		if (row->name == NULL)
			row->name = strdup(name);
		if (row->name == NULL)
			return -ENOMEM;
		row->agent_name = gpu_get_agent_name(process, shape != NULL ? shape->agent : 0);
		data->kernels[data->kernel_count++] = *row;
	}
	return 0;
}

static int sum_records_of_process(struct gpu_data *data, struct gpu_records_of_process *process,
				  size_t *capacity)
{
	struct gpu_process_summing_state sums = {data, process, NULL, 0};
	int result;

	sums.kernel_row_by_shape_id =
		calloc((size_t)process->shape_count + 1, sizeof(*sums.kernel_row_by_shape_id));
	if (sums.kernel_row_by_shape_id == NULL)
		return -ENOMEM;
	result = gpu_visit_records(process, add_record_to_sums, &sums);
	if (result == 0)
		result = append_kernel_rows(&sums, capacity);
	free(sums.kernel_row_by_shape_id);
	for (unsigned i = 0; i < GPU_LOSS_COUNT; i++)
		data->losses[i] += process->header.losses[i];
	data->losses[GPU_LOSS_SHORTENED] += process->missing_record_count;
	data->recorder_threads_cpu_ns += process->header.own_cpu_ns;
	data->torn_bytes += process->torn_bytes;
	return result;
}

static int compare_kernel_rows_by_name(const void *left, const void *right)
{
	const struct gpu_kernel_row *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order != 0 ? order : strcmp(a->agent_name, b->agent_name);
}

static int compare_kernel_rows_by_time(const void *left, const void *right)
{
	const struct gpu_kernel_row *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return compare_kernel_rows_by_name(left, right);
}

static void merge_kernel_row_into(struct gpu_kernel_row *to, struct gpu_kernel_row *from)
{
	if (from->count != 0 && (to->count == 0 || from->minimum_ns < to->minimum_ns))
		to->minimum_ns = from->minimum_ns;
	if (from->maximum_ns > to->maximum_ns)
		to->maximum_ns = from->maximum_ns;
	to->count += from->count;
	to->total_ns += from->total_ns;
	to->incomplete += from->incomplete;
	free(from->name);
}

/* One row a kernel and agent, of all processes and ways to launch it. */
static void merge_and_sort_kernel_rows(struct gpu_data *data)
{
	size_t kept = 0;

	if (data->kernel_count == 0)
		return;
	qsort(data->kernels, data->kernel_count, sizeof(*data->kernels),
	      compare_kernel_rows_by_name);
	for (size_t i = 1; i < data->kernel_count; i++) {
		if (compare_kernel_rows_by_name(&data->kernels[kept], &data->kernels[i]) == 0)
			merge_kernel_row_into(&data->kernels[kept], &data->kernels[i]);
		else
			data->kernels[++kept] = data->kernels[i];
	}
	data->kernel_count = kept + 1;
	qsort(data->kernels, data->kernel_count, sizeof(*data->kernels),
	      compare_kernel_rows_by_time);
}

/* By _exit(), a signal or exec, or they still run: their tools could not hand over what they had.
 */
static int add_problem_of_unfinished_processes(struct gpu_data *data)
{
	size_t count = 0;
	char text[256];

	for (size_t i = 0; i < data->process_count; i++)
		count += data->processes[i].header.state == GPU_FILE_OPEN &&
			 data->processes[i].header.committed != 0;
	if (count == 0)
		return 0;
	snprintf(text, sizeof(text),
		 "%zu of %zu processes did not end by exit(): device records of the last tenth of "
		 "a second, and the last interval of device counters, may be missing",
		 count, data->process_count);
	return add_problem_line(data, "", text);
}

int gpu_data_read_directory(const char *directory, struct gpu_data **ret, struct problem *problem)
{
	struct gpu_data *data = calloc(1, sizeof(*data));
	size_t capacity = 0;
	char *spool = NULL;
	int result = data != NULL && asprintf(&spool, "%s/spool", directory) >= 0 ? 0 : -ENOMEM;

	*ret = NULL;
	if (result == 0)
		result = read_all_gpu_files(data, spool);
	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = sum_records_of_process(data, &data->processes[i], &capacity);
	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = gpu_ranges_add_process(&data->ranges, &data->processes[i]);
	gpu_ranges_sum_totals(&data->ranges);
	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = gpu_idle_add_process(&data->idle, (uint32_t)i, &data->processes[i]);
	if (result == 0)
		result = gpu_sum_counter_rows(data);
	if (result == 0)
		result = add_problem_of_unfinished_processes(data);
	free(spool);
	if (result != 0) {
		gpu_data_free(data);
		return problem_set(problem, result,
				   "out of memory while reading records of devices");
	}
	merge_and_sort_kernel_rows(data);
	if (data->process_count != 0 || data->problem_count != 0)
		*ret = data;
	else
		gpu_data_free(data);
	return 0;
}

void gpu_data_free(struct gpu_data *data)
{
	if (data == NULL)
		return;
	for (size_t i = 0; i < data->process_count; i++)
		gpu_process_deinit(&data->processes[i]);
	for (size_t i = 0; i < data->kernel_count; i++)
		free(data->kernels[i].name);
	for (size_t i = 0; i < data->problem_count; i++)
		free(data->problems[i]);
	gpu_counter_rows_deinit(data);
	gpu_ranges_deinit(&data->ranges);
	gpu_idle_deinit(&data->idle);
	gpu_steps_deinit(&data->steps);
	free(data->processes);
	free(data->kernels);
	free(data->problems);
	free(data);
}
