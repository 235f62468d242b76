/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * All files of a session, and their sums; see gpu.h.
 */
#include "analysis/gpu.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/arena.h"
#include "analysis/gpu_counts.h"
#include "analysis/record_file.h"
#include "binary/demangle.h"

char *gpu_demangled(const char *name)
{
	return demangle(name);
}

static int note(struct gpu_data *data, const char *path, const char *text)
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

/* The whole file, malloc'ed; a file that shrinks meanwhile is a shorter one. */
static int read_file(const char *path, uint8_t **ret, size_t *size)
{
	struct problem problem;
	int descriptor;
	uint64_t length;
	ssize_t got = record_file_open(path, &descriptor, &length, &problem);

	*ret = got == 0 ? malloc((size_t)length + 1) : NULL;
	if (*ret != NULL)
		got = record_file_read(descriptor, *ret, (size_t)length, 0);
	else if (got == 0)
		got = -ENOMEM;
	if (descriptor >= 0)
		close(descriptor);
	if (got < 0) {
		free(*ret);
		*ret = NULL;
		return (int)got;
	}
	*size = (size_t)got;
	return 0;
}

int gpu_process_open(const char *path, struct gpu_process *ret)
{
	uint8_t *bytes;
	size_t size;
	int result = read_file(path, &bytes, &size);

	return result == 0 ? gpu_process_read(bytes, size, ret) : result;
}

int gpu_header_read(const char *path, struct gpu_file_header *ret)
{
	struct problem problem;
	uint64_t length;
	int descriptor = -1;
	ssize_t got = record_file_open(path, &descriptor, &length, &problem);

	if (got == 0)
		got = record_file_read(descriptor, ret, sizeof(*ret), 0);
	if (descriptor >= 0)
		close(descriptor);
	if (got < 0)
		return (int)got;
	return (size_t)got == sizeof(*ret) && memcmp(ret->magic, GPU_MAGIC, sizeof(ret->magic)) == 0
		       ? 0
		       : -EBADMSG;
}

static int add_file(struct gpu_data *data, size_t *capacity, const char *path)
{
	struct gpu_process process;
	int result = gpu_process_open(path, &process);

	if (result == -ENOMEM)
		return result;
	if (result != 0)
		return note(data, path,
			    result == -EBADMSG ? "not a file of kymo's records of devices"
			    : result == -EPROTO
				    ? "records of devices in a version that this kymo cannot read"
				    : strerror(-result));
	if (array_reserve((void **)&data->processes, capacity, data->process_count,
			  sizeof(*data->processes)) < 0) {
		gpu_process_deinit(&process);
		return -ENOMEM;
	}
	process.path = strdup(path);
	data->processes[data->process_count++] = process;
	return 0;
}

static int find_files(struct gpu_data *data, const char *directory)
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
		result = add_file(data, &capacity, path);
		free(path);
	}
	if (folder != NULL)
		closedir(folder);
	return result;
}

/* ---- sums ---- */

struct sums {
	struct gpu_data *data;
	struct gpu_process *process;
	struct gpu_kernel_row *by_shape; /* by id; 0: unknown */
	int error;
};

static void add_kernel(struct sums *sums, const struct gpu_kernel *kernel)
{
	uint32_t id = kernel->head.id <= sums->process->shape_count ? kernel->head.id : 0;
	struct gpu_kernel_row *row = &sums->by_shape[id];

	sums->data->kernel_records++;
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

static void add_copy(struct sums *sums, const struct gpu_copy *copy)
{
	uint32_t direction = copy->head.id < GPU_DIRECTION_COUNT ? copy->head.id : 0;
	struct gpu_copy_row *row = &sums->data->copies[direction];

	sums->data->copy_records++;
	row->count++;
	row->bytes += copy->bytes;
	row->total_ns += copy->duration;
}

static int add_record(const struct gpu_record_head *head, void *context)
{
	struct sums *sums = context;

	switch (head->kind) {
	case GPU_RECORD_KERNEL:
		add_kernel(sums, (const struct gpu_kernel *)head);
		break;
	case GPU_RECORD_COPY:
		add_copy(sums, (const struct gpu_copy *)head);
		break;
	case GPU_RECORD_CALL:
		sums->data->call_records++;
		break;
	case GPU_RECORD_METRIC:
		sums->data->metric_records++;
		break;
	case GPU_RECORD_NOTICE:
		return note(sums->data, "", ((const struct gpu_notice *)head)->text);
	default:
		break;
	}
	return 0;
}

static int take_rows(struct sums *sums, size_t *capacity)
{
	struct gpu_data *data = sums->data;
	const struct gpu_process *process = sums->process;

	for (uint32_t id = 0; id <= process->shape_count; id++) {
		struct gpu_kernel_row *row = &sums->by_shape[id];
		const char *name = gpu_kernel_name(process, id);
		const struct gpu_shape *shape = process->shapes[id];

		if (row->count == 0 && row->incomplete == 0)
			continue;
		if (array_reserve((void **)&data->kernels, capacity, data->kernel_count,
				  sizeof(*data->kernels)) < 0)
			return -ENOMEM;
		row->name = gpu_demangled(name);
		if (row->name == NULL)
			row->name = strdup(name);
		if (row->name == NULL)
			return -ENOMEM;
		row->agent = gpu_agent_name(process, shape != NULL ? shape->agent : 0);
		data->kernels[data->kernel_count++] = *row;
	}
	return 0;
}

static int sum_up(struct gpu_data *data, struct gpu_process *process, size_t *capacity)
{
	struct sums sums = {data, process, NULL, 0};
	int result;

	sums.by_shape = calloc((size_t)process->shape_count + 1, sizeof(*sums.by_shape));
	if (sums.by_shape == NULL)
		return -ENOMEM;
	result = gpu_each(process, add_record, &sums);
	if (result == 0)
		result = take_rows(&sums, capacity);
	free(sums.by_shape);
	for (unsigned i = 0; i < GPU_LOSS_COUNT; i++)
		data->losses[i] += process->header.losses[i];
	data->own_cpu_ns += process->header.own_cpu_ns;
	data->torn_bytes += process->torn_bytes;
	return result;
}

static int by_name(const void *left, const void *right)
{
	const struct gpu_kernel_row *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	return order != 0 ? order : strcmp(a->agent, b->agent);
}

static int by_time(const void *left, const void *right)
{
	const struct gpu_kernel_row *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return by_name(left, right);
}

static void add_row(struct gpu_kernel_row *to, struct gpu_kernel_row *from)
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
static void merge_rows(struct gpu_data *data)
{
	size_t kept = 0;

	if (data->kernel_count == 0)
		return;
	qsort(data->kernels, data->kernel_count, sizeof(*data->kernels), by_name);
	for (size_t i = 1; i < data->kernel_count; i++) {
		if (by_name(&data->kernels[kept], &data->kernels[i]) == 0)
			add_row(&data->kernels[kept], &data->kernels[i]);
		else
			data->kernels[++kept] = data->kernels[i];
	}
	data->kernel_count = kept + 1;
	qsort(data->kernels, data->kernel_count, sizeof(*data->kernels), by_time);
}

/* By _exit(), a signal or exec, or they still run: their tools could not hand over what they had.
 */
static int note_ends(struct gpu_data *data)
{
	size_t count = 0;
	char text[256];

	for (size_t i = 0; i < data->process_count; i++)
		count += data->processes[i].header.state == GPU_FILE_OPEN &&
			 data->processes[i].header.committed != 0;
	if (count == 0)
		return 0;
	snprintf(text, sizeof(text),
		 "%zu of %zu processes did not end by exit(): what devices did in the last tenth "
		 "of a "
		 "second before, and in the last interval of their counters, may be missing",
		 count, data->process_count);
	return note(data, "", text);
}

int gpu_open(const char *directory, struct gpu_data **ret, struct problem *problem)
{
	struct gpu_data *data = calloc(1, sizeof(*data));
	size_t capacity = 0;
	char *spool = NULL;
	int result = data != NULL && asprintf(&spool, "%s/spool", directory) >= 0 ? 0 : -ENOMEM;

	*ret = NULL;
	if (result == 0)
		result = find_files(data, spool);
	for (size_t i = 0; result == 0 && i < data->process_count; i++)
		result = sum_up(data, &data->processes[i], &capacity);
	if (result == 0)
		result = gpu_counts_sum(data);
	if (result == 0)
		result = note_ends(data);
	free(spool);
	if (result != 0) {
		gpu_close(data);
		return problem_set(problem, result,
				   "out of memory while reading records of devices");
	}
	merge_rows(data);
	if (data->process_count != 0 || data->problem_count != 0)
		*ret = data;
	else
		gpu_close(data);
	return 0;
}

void gpu_close(struct gpu_data *data)
{
	if (data == NULL)
		return;
	for (size_t i = 0; i < data->process_count; i++)
		gpu_process_deinit(&data->processes[i]);
	for (size_t i = 0; i < data->kernel_count; i++)
		free(data->kernels[i].name);
	for (size_t i = 0; i < data->problem_count; i++)
		free(data->problems[i]);
	gpu_counts_deinit(data);
	free(data->processes);
	free(data->kernels);
	free(data->problems);
	free(data);
}
