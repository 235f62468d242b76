/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters as CSV: counter_collection.csv has a row for each launch and counter, with the columns
 * of rocprofv3's file of that name; device_counters.csv a row for each reading and counter.
 * Instances are added up; counters.json has them one by one.
 */
#include <errno.h>
#include <string.h>

#include "analysis/gpu/counts.h"
#include "common/utf8.h"
#include "output/gpu_names.h"
#include "output/output.h"

struct csv_table_writer {
	FILE *stream;
	struct gpu_demangled_name_cache names;
};

static const char kernel_csv_header[] =
	"\"Correlation_Id\",\"Dispatch_Id\",\"Agent_Id\",\"Queue_Id\",\"Process_Id\",\"Thread_Id\","
	"\"Grid_Size\",\"Kernel_Id\",\"Kernel_Name\",\"Workgroup_Size\",\"LDS_Block_Size\","
	"\"Scratch_Size\",\"VGPR_Count\",\"Accum_VGPR_Count\",\"SGPR_Count\",\"Counter_Name\","
	"\"Counter_Value\",\"Start_Timestamp\",\"End_Timestamp\"\n";
static const char device_csv_header[] =
	"\"Agent_Id\",\"Process_Id\",\"Counter_Name\",\"Counter_Value\",\"Start_Timestamp\","
	"\"End_Timestamp\"\n";

static void csv_put_text(FILE *stream, const char *text)
{
	size_t left = strlen(text);

	fputc('"', stream);
	while (left != 0) {
		const char *shown;
		size_t shown_size,
			size = utf8_next_printable_character(text, left, &shown, &shown_size);

		if (*text == '"')
			fputc('"', stream);
		fwrite(shown, 1, shown_size, stream);
		text += size;
		left -= size;
	}
	fputc('"', stream);
}

static unsigned long long multiply_launch_dimensions(const uint32_t *sizes)
{
	return (unsigned long long)sizes[0] * (sizes[1] + !sizes[1]) * (sizes[2] + !sizes[2]);
}

static void csv_put_counter_columns(FILE *stream, const struct gpu_records_of_process *process,
				    const struct gpu_counter_measurement *count)
{
	csv_put_text(stream, gpu_get_interned_string(process, count->counter->name));
	fprintf(stream, ",%s,%llu,%llu\n", gpu_format_counter_value(count->total).text,
		(unsigned long long)count->start, (unsigned long long)count->end);
}

static int csv_put_kernel_counter_row(const struct gpu_counter_measurement *count, void *context)
{
	static const struct gpu_shape none;
	struct csv_table_writer *table = context;
	const struct gpu_records_of_process *process = table->names.process;
	const struct gpu_counted *kernel = count->kernel;
	const struct gpu_shape *shape;
	uint32_t id;

	if (kernel == NULL)
		return 0;
	id = kernel->head.id;
	shape = id <= process->shape_count ? process->kernel_shape_by_id[id] : NULL;
	if (shape == NULL)
		shape = &none;
	fprintf(table->stream, "%llu,%llu,", (unsigned long long)kernel->correlation,
		(unsigned long long)kernel->dispatch);
	csv_put_text(table->stream,
		     gpu_names_format_agent_label(process, count->counter->agent).text);
	fprintf(table->stream, ",%llu,%u,%u,%llu,%u,",
		(unsigned long long)(kernel->queue & UINT32_MAX), process->header.pid, kernel->tid,
		multiply_launch_dimensions(shape->grid),
		gpu_names_get_kernel_name_string_id(&table->names, id));
	csv_put_text(table->stream, gpu_names_get_demangled_kernel_name(&table->names, id));
	fprintf(table->stream, ",%llu,%u,%u,0,0,0,", multiply_launch_dimensions(shape->group),
		shape->group_bytes, shape->private_bytes);
	csv_put_counter_columns(table->stream, process, count);
	return 0;
}

static int csv_put_device_reading_row(const struct gpu_counter_measurement *count, void *context)
{
	struct csv_table_writer *table = context;
	const struct gpu_records_of_process *process = table->names.process;

	if (count->kernel != NULL)
		return 0;
	csv_put_text(table->stream,
		     gpu_names_format_agent_label(process, count->counter->agent).text);
	fprintf(table->stream, ",%u,", process->header.pid);
	csv_put_counter_columns(table->stream, process, count);
	return 0;
}

static int write_csv_table(const struct session *session, const char *header,
			   int (*put)(const struct gpu_counter_measurement *count, void *context),
			   FILE *stream, struct problem *problem)
{
	const struct gpu_data *data = session_get_gpu_data(session);
	int result = 0;

	fputs(header, stream);
	for (size_t i = 0; data != NULL && result == 0 && i < data->process_count; i++) {
		struct csv_table_writer table = {.stream = stream};

		result = gpu_names_init(&table.names, &data->processes[i]);
		if (result == 0)
			result = gpu_visit_counter_measurements(&data->processes[i], put, &table);
		gpu_names_deinit(&table.names);
	}
	if (result == 0 && ferror(stream))
		return problem_set(problem, -EIO, "cannot write counters");
	return result != 0 ? problem_set(problem, result, "out of memory writing counters") : 0;
}

static int write_kernel_counters_csv(struct session *session, const struct output_options *options,
				     FILE *stream, struct problem *problem)
{
	(void)options;
	return write_csv_table(session, kernel_csv_header, csv_put_kernel_counter_row, stream,
			       problem);
}

const struct output_format output_format_counters = {
	.name = "counters",
	.file_name = "counter_collection.csv",
	.description = "counters of kernels, one row per launch and counter",
	.has_whole_run_only = true,
	.write = write_kernel_counters_csv,
};

static int write_device_counters_csv(struct session *session, const struct output_options *options,
				     FILE *stream, struct problem *problem)
{
	(void)options;
	return write_csv_table(session, device_csv_header, csv_put_device_reading_row, stream,
			       problem);
}

const struct output_format output_format_device_counters = {
	.name = "device-counters",
	.file_name = "device_counters.csv",
	.description = "counters of devices, one row per reading and counter",
	.has_whole_run_only = true,
	.write = write_device_counters_csv,
};
