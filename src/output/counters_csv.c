/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters as CSV: counter_collection.csv has a row for each launch and counter, with the columns
 * of rocprofv3's file of that name; device_counters.csv a row for each reading and counter.
 * Instances are added up; counters.json has them one by one.
 */
#include <errno.h>
#include <string.h>

#include "analysis/gpu_counts.h"
#include "output/gpu_names.h"
#include "output/writers.h"

struct table {
	FILE *stream;
	struct gpu_names names;
};

static const char kernel_header[] =
	"\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\","
	"\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\","
	"\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\","
	"\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n";
static const char device_header[] =
	"\"Agent_Id\",\"Process_Id\",\"Counter_Name\",\"Counter_Value\",\"Start_Timestamp\","
	"\"End_Timestamp\"\n";

static void put_text(FILE *stream, const char *text)
{
	fputc('"', stream);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

static unsigned long long product(const uint32_t *sizes)
{
	return (unsigned long long)sizes[0] * (sizes[1] + !sizes[1]) * (sizes[2] + !sizes[2]);
}

static void put_end(FILE *stream, const struct gpu_process *process, const struct gpu_count *count)
{
	put_text(stream, gpu_string(process, count->counter->name));
	fprintf(stream, ",%s,%llu,%llu\n", gpu_number(count->total).text,
		(unsigned long long)count->start, (unsigned long long)count->end);
}

static int put_kernel(const struct gpu_count *count, void *context)
{
	static const struct gpu_shape none;
	struct table *table = context;
	const struct gpu_process *process = table->names.process;
	const struct gpu_counted *kernel = count->kernel;
	const struct gpu_shape *shape;
	uint32_t id;

	if (kernel == NULL)
		return 0;
	id = kernel->head.id;
	shape = id <= process->shape_count ? process->shapes[id] : NULL;
	if (shape == NULL)
		shape = &none;
	fprintf(table->stream, "%llu,%llu,", (unsigned long long)kernel->correlation,
		(unsigned long long)kernel->dispatch);
	put_text(table->stream, gpu_names_agent(process, count->counter->agent).text);
	fprintf(table->stream, ",%llu,%u,%u,%llu,%u,",
		(unsigned long long)(kernel->queue & UINT32_MAX), process->header.pid, kernel->tid,
		product(shape->grid), gpu_names_kernel_id(&table->names, id));
	put_text(table->stream, gpu_names_kernel(&table->names, id));
	fprintf(table->stream, ",%llu,%u,%u,0,0,0,", product(shape->group), shape->group_bytes,
		shape->private_bytes);
	put_end(table->stream, process, count);
	return 0;
}

static int put_reading(const struct gpu_count *count, void *context)
{
	struct table *table = context;
	const struct gpu_process *process = table->names.process;

	if (count->kernel != NULL)
		return 0;
	put_text(table->stream, gpu_names_agent(process, count->counter->agent).text);
	fprintf(table->stream, ",%u,", process->header.pid);
	put_end(table->stream, process, count);
	return 0;
}

static int write_table(const struct session *session, const char *header,
		       int (*put)(const struct gpu_count *count, void *context), FILE *stream,
		       struct problem *problem)
{
	const struct gpu_data *data = session->gpu;
	int result = 0;

	fputs(header, stream);
	for (size_t i = 0; data != NULL && result == 0 && i < data->process_count; i++) {
		struct table table = {.stream = stream};

		result = gpu_names_init(&table.names, &data->processes[i]);
		if (result == 0)
			result = gpu_each_count(&data->processes[i], put, &table);
		gpu_names_deinit(&table.names);
	}
	if (result == 0 && ferror(stream))
		return problem_set(problem, -EIO, "cannot write counters");
	return result != 0 ? problem_set(problem, result, "out of memory writing counters") : 0;
}

int output_counters_csv(struct session *session, const struct output_options *options, FILE *stream,
			struct problem *problem)
{
	(void)options;
	return write_table(session, kernel_header, put_kernel, stream, problem);
}

int output_device_counters_csv(struct session *session, const struct output_options *options,
			       FILE *stream, struct problem *problem)
{
	(void)options;
	return write_table(session, device_header, put_reading, stream, problem);
}
