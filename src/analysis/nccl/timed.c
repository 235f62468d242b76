/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which files of GPUs' records are of which process that NCCL's plugin was in. Of a file that is of
 * none only the header is read.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

#define SAME_CLOCK_DIFFERENCE_MAX_NS                                                               \
	INT64_C(2000000000) /* CLOCK_REALTIME is adjusted, by less than that */

/* Images of a process that called exec share pid and start: what is whose, times tell. */
static bool gpu_file_is_of_process(const struct gpu_file_header *header,
				   const struct nccl_data *data, const struct nccl_process *process)
{
	int64_t offset = (int64_t)(header->start_realtime_ns - header->start_boottime_ns), apart;

	return header->pid == process->file.header.pid &&
	       header->process_start == process->file.header.process_start &&
	       !__builtin_sub_overflow(
		       offset, data->hosts[process->host].realtime_minus_boottime_ns, &apart) &&
	       apart < SAME_CLOCK_DIFFERENCE_MAX_NS && apart > -SAME_CLOCK_DIFFERENCE_MAX_NS;
}

/* One that cannot be read is reported where GPUs' records are the matter
 * (gpu_data_read_directory()). */
static int read_kernels_of_gpu_file(struct nccl_data *data, const char *path)
{
	struct gpu_file_header header;
	struct gpu_records_of_process file = {0};
	bool is_read = false;
	int result = 0;

	if (gpu_read_file_header(path, &header) != 0)
		return 0;
	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		if (!gpu_file_is_of_process(&header, data, &data->processes[i]))
			continue;
		if (!is_read)
			result = gpu_process_read_file(path, &file);
		if (result == 0)
			result = nccl_kernels_add_from_process(&data->processes[i].kernels, &file);
		is_read = true;
	}
	gpu_process_deinit(&file);
	return result == -ENOMEM ? result : 0;
}

/* *.gpu, or as kymo merge names them, for which they are no devices of its result's own. */
static int is_gpu_record_file_entry(const struct dirent *entry)
{
	const char *end = strstr(entry->d_name, ".gpu");

	return end != NULL && (end[4] == '\0' || strcmp(end + 4, ".kernels") == 0);
}

int nccl_read_gpu_kernels(struct nccl_data *data, const char *spool)
{
	struct arena *arena = &nccl_get_private(data)->arena;
	struct dirent **names = NULL;
	int count = scandir(spool, &names, is_gpu_record_file_entry, alphasort), result = 0;

	for (int i = 0; i < count; i++) {
		char *path = result == 0
				     ? arena_format_text(arena, "%s/%s", spool, names[i]->d_name)
				     : NULL;

		if (result == 0)
			result = path != NULL ? read_kernels_of_gpu_file(data, path) : -ENOMEM;
		free(names[i]);
	}
	free(names);
	return result;
}
