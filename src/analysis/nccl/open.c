/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening what the NCCL plugin recorded: files, hosts, communicators; see nccl.h. A file that
 * cannot be read is a line in `problems`, not an error.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/nccl/private.h"
#include "common/process_stat.h"

#define CLOCK_RATE_SPAN_LEAST_NS                                                                   \
	100000000 /* between clocks that tell the rate better than the header */
#define LAST_WRITE_PAUSE_NS  1000000
#define LAST_WRITE_TRIES_MAX 500u

int nccl_set_out_of_memory_problem(struct problem *problem)
{
	return problem_set(problem, -ENOMEM, "out of memory while reading NCCL records");
}

int nccl_add_problem_line(struct nccl_data *data, const char *format, ...)
{
	struct nccl_private *private = nccl_get_private(data);
	char text[sizeof(((struct problem *)0)->text)];
	va_list arguments;
	char *line;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = arena_copy_bytes(&private->arena, text, strlen(text));
	if (!line || array_reserve_one_more((void **)&data->problems, &private->problem_capacity,
					    data->problem_count, sizeof(*data->problems)) < 0)
		return -ENOMEM;
	data->problems[data->problem_count++] = line;
	return 0;
}

uint32_t nccl_find_or_add_function(struct nccl_data *data, uint32_t process, uint8_t name)
{
	struct nccl_private *private = nccl_get_private(data);
	struct nccl_process *from = &data->processes[process];
	const char *text = nccl_file_get_interned_name(&from->file, name);

	if (from->functions[name] != NCCL_INDEX_NONE)
		return from->functions[name];
	for (uint32_t i = 0; i < data->function_count; i++) {
		if (!strcmp(data->functions[i].name, text))
			return from->functions[name] = i;
	}
	text = arena_intern_string(&private->arena, text);
	if (!text || array_reserve_one_more((void **)&data->functions, &private->function_capacity,
					    data->function_count, sizeof(*data->functions)) < 0)
		return NCCL_INDEX_NONE;
	data->functions[data->function_count] =
		(struct nccl_named_function){text, nccl_name_to_function(text)};
	return from->functions[name] = data->function_count++;
}

/* ---- hosts ---- */

/* Containers of one machine have its boot id, and its clock. */
static int find_or_add_host(struct nccl_data *data, const struct nccl_process *process,
			    uint32_t *ret)
{
	struct nccl_private *private = nccl_get_private(data);
	const struct nccl_file_header *header = &process->file.header;
	struct nccl_host_clock_info *host;

	for (uint32_t i = 0; i < data->host_count; i++) {
		host = &data->hosts[i];
		*ret = i;
		if (*header->boot_id ? !strcmp(host->boot_id, header->boot_id)
				     : !*host->boot_id && !strcmp(host->name, header->host))
			return 0;
	}
	if (array_reserve_one_more((void **)&data->hosts, &private->host_capacity, data->host_count,
				   sizeof(*data->hosts)) < 0)
		return -ENOMEM;
	*ret = data->host_count;
	host = &data->hosts[data->host_count++];
	host->name = arena_intern_string(&private->arena, header->host);
	host->boot_id = arena_intern_string(&private->arena, header->boot_id);
	host->realtime_minus_boottime_ns = clock_map_get_realtime_minus_boottime(&process->clock);
	return host->name && host->boot_id ? 0 : -ENOMEM;
}

/* ---- one process ---- */

/* The header's rate was measured within a millisecond or so, at the start: on virtual machines it
 * is off by up to a percent. After the last clock of a process that was killed that counts, so the
 * rate is taken from the clocks, where they are far enough apart. */
static int build_process_clock_map(struct nccl_process *process)
{
	const struct nccl_file_header *header = &process->file.header;
	uint64_t start = header->clocks[0].boottime_ns, latest = start;

	for (unsigned i = 0; i < NCCL_CLOCKS; i++) {
		const struct nccl_clock *clock = &header->clocks[i];
		struct clock_map_point point = {clock->ticks, clock->boottime_ns,
						clock->monotonic_ns, clock->realtime_ns};

		if (clock->ticks && clock_map_add_point(&process->clock, &point) < 0)
			return -ENOMEM;
		if (clock->ticks && clock->boottime_ns > latest)
			latest = clock->boottime_ns;
	}
	clock_map_sort_and_set_rate(&process->clock, header->tick_clock ? 1000000000
						     : latest - start >= CLOCK_RATE_SPAN_LEAST_NS
							     ? 0
							     : header->tick_hz);
	return 0;
}

static bool boot_id_is_current(const char *boot_id)
{
	char own[40] = "";
	FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (!stream)
		return false;
	if (!fgets(own, sizeof(own), stream))
		own[0] = '\0';
	fclose(stream);
	own[strcspn(own, "\n")] = '\0';
	return *own && !strcmp(own, boot_id);
}

static enum nccl_process_end_state find_process_end_state(const struct nccl_file_header *header)
{
	if (header->state == NCCL_FILE_EXITED)
		return NCCL_PROCESS_EXITED;
	if (header->process_start && boot_id_is_current(header->boot_id) &&
	    process_read_start_of_live(header->pid) == header->process_start)
		return NCCL_PROCESS_RUNNING;
	return NCCL_PROCESS_ENDED_SILENTLY;
}

static uint64_t count_lost_records(const struct nccl_file *file)
{
	const uint64_t *losses = file->header.losses;

	return losses[NCCL_LOSS_OPERATIONS] + losses[NCCL_LOSS_COMMUNICATORS] +
	       file->torn_record_count + file->torn_chunk_count + (file->missing_bytes != 0) +
	       (file->header.state == NCCL_FILE_FULL);
}

static int add_file_damage_problems(struct nccl_data *data, const struct nccl_file *file)
{
	int result = 0;

	if (file->missing_bytes)
		result = nccl_add_problem_line(data, "%s: cut off: %llu bytes of %llu are missing",
					       file->path, (unsigned long long)file->missing_bytes,
					       (unsigned long long)file->header.file_size);
	if (result == 0 && file->torn_chunk_count)
		result =
			nccl_add_problem_line(data, "%s: %llu damaged chunk%s left out", file->path,
					      (unsigned long long)file->torn_chunk_count,
					      file->torn_chunk_count == 1 ? "" : "s");
	if (result == 0 && *file->header.problem)
		result = nccl_add_problem_line(data, "%s: %s", file->path, file->header.problem);
	return result;
}

struct communicator_member_context {
	struct nccl_data *data;
	uint32_t process;
};

static int add_communicator_member(const void *record, void *context)
{
	const struct communicator_member_context *members = context;
	struct nccl_data *data = members->data;
	struct nccl_private *private = nccl_get_private(data);
	struct nccl_communicator_rank *member;

	if (array_reserve_one_more((void **)&data->members, &private->member_capacity,
				   data->member_count, sizeof(*data->members)) < 0)
		return -ENOMEM;
	member = &data->members[data->member_count];
	*member = (struct nccl_communicator_rank){.process = members->process,
						  .communicator = NCCL_INDEX_NONE};
	memcpy(&member->record, record, sizeof(member->record));
	memcpy(member->name, member->record.name, sizeof(member->record.name));
	member->rank = member->record.rank < 0 ? -1 : member->record.rank;
	member->rank_count = member->record.ranks > 0 ? (uint32_t)member->record.ranks : 0;
	member->is_rank_count_inferred = member->record.flags & NCCL_COMMUNICATOR_RANKS_INFERRED;
	return id_map_set(&data->processes[members->process].members, member->record.creation,
			  data->member_count++);
}

static int add_nccl_process(struct nccl_data *data, struct nccl_file *file)
{
	struct nccl_private *private = nccl_get_private(data);
	struct communicator_member_context members = {data, data->process_count};
	struct nccl_process *process;
	int result;

	if (array_reserve_one_more((void **)&data->processes, &private->process_capacity,
				   data->process_count, sizeof(*data->processes)) < 0)
		return -ENOMEM;
	process = &data->processes[data->process_count++];
	*process = (struct nccl_process){.file = *file,
					 .first_member_index = data->member_count,
					 .ended = find_process_end_state(&file->header),
					 .lost_operation_count = count_lost_records(file),
					 .overwritten_operation_count =
						 file->header.losses[NCCL_LOSS_RING_OPERATIONS]};
	*file = (struct nccl_file){.descriptor = -1};
	for (unsigned i = 0; i < NCCL_NAMES; i++)
		process->functions[i] = NCCL_INDEX_NONE;
	result = build_process_clock_map(process);
	if (result == 0)
		result = find_or_add_host(data, process, &process->host);
	if (result == 0)
		result = nccl_file_visit_records_of_kind(&process->file, NCCL_CHUNK_COMMUNICATORS,
							 add_communicator_member, &members);
	process->member_count = data->member_count - process->first_member_index;
	process->start_ticks = process->file.header.clocks[0].ticks;
	process->last_ticks = process->file.header.heartbeat_ticks;
	if (process->last_ticks < process->start_ticks)
		process->last_ticks = process->start_ticks;
	if (result == 0)
		result = add_file_damage_problems(data, &process->file);
	nccl_file_close_temporarily(&process->file);
	return result;
}

/* ---- all files ---- */

/* Results that were copied, and are read with the original. 1: it is known; or negative errno. */
static int add_file_identity_if_new(struct nccl_data *data, const struct nccl_file *file)
{
	struct nccl_private *private = nccl_get_private(data);
	const struct nccl_file_header *header = &file->header;
	uint64_t key = id_map_hash_key((uint64_t)header->pid << 32 | header->file_number) ^
		       id_map_hash_key(header->process_start + header->nonce) ^
		       id_map_hash_key(header->clocks[0].ticks);
	uint32_t known;

	for (const char *at = header->boot_id; *at; at++)
		key = id_map_hash_key(key + (unsigned char)*at);
	known = id_map_get(&private->files, key);
	if (known != ID_MAP_NONE)
		return nccl_add_problem_line(data, "%s is the same as %s: left out", file->path,
					     data->processes[known].file.path) < 0
			       ? -ENOMEM
			       : 1;
	return id_map_set(&private->files, key, data->process_count);
}

static bool file_is_locked(int file)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return !fcntl(file, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
}

/* The process has ended, and the task that outlives it writes its last records: it holds a lock of
 * the file until then (nccl/keeper.h). A process in another pid namespace may only look as if it
 * had ended. True: it has to be read again. */
static bool wait_for_last_write(const struct nccl_file *file)
{
	struct timespec pause = {0, LAST_WRITE_PAUSE_NS};

	if (!boot_id_is_current(file->header.boot_id) ||
	    find_process_end_state(&file->header) != NCCL_PROCESS_ENDED_SILENTLY)
		return false;
	for (unsigned tries = 0; tries < LAST_WRITE_TRIES_MAX; tries++) {
		if (!file_is_locked(file->descriptor))
			break;
		nanosleep(&pause, NULL);
	}
	return true;
}

static bool wait_if_file_is_being_written(const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool locked = file >= 0 && file_is_locked(file);

	if (locked)
		nanosleep(&(struct timespec){0, LAST_WRITE_PAUSE_NS}, NULL);
	if (file >= 0)
		close(file);
	return locked;
}

static int open_nccl_file_when_written(const char *path, struct nccl_file *ret,
				       struct problem *problem)
{
	int result = nccl_file_open(path, ret, problem);

	/* Somebody cut it, and it is about to be written again. */
	for (unsigned tries = 0; result == -ENODATA && tries < LAST_WRITE_TRIES_MAX &&
				 wait_if_file_is_being_written(path);
	     tries++)
		result = nccl_file_open(path, ret, problem);
	if (result < 0 || !wait_for_last_write(ret))
		return result;
	nccl_file_close(ret);
	return nccl_file_open(path, ret, problem);
}

static int open_and_add_nccl_file(struct nccl_data *data, const char *path)
{
	struct problem problem;
	struct nccl_file file;
	int result = open_nccl_file_when_written(path, &file, &problem);

	if (result == -ENOMEM)
		return result;
	if (result < 0) {
		data->unreadable_files++;
		return nccl_add_problem_line(data, "%s", problem.text);
	}
	result = add_file_identity_if_new(data, &file);
	if (result == 0)
		result = add_nccl_process(data, &file);
	nccl_file_close(&file); /* of nothing, once the process has it */
	return result == -ENOMEM ? result : 0;
}

static int is_nccl_record_file_entry(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".nccl");
}

static int open_all_nccl_files(struct nccl_data *data, const char *spool, struct dirent **names,
			       int count, struct problem *problem)
{
	struct nccl_private *private = nccl_get_private(data);
	int result = 0;

	for (int i = 0; result == 0 && i < count; i++) {
		char *path = arena_format_text(&private->arena, "%s/%s", spool, names[i]->d_name);

		result = path ? open_and_add_nccl_file(data, path) : -ENOMEM;
	}
	return result < 0 ? nccl_set_out_of_memory_problem(problem) : 0;
}

static struct nccl_data *allocate_nccl_data(void)
{
	struct nccl_data *data = calloc(1, sizeof(*data));
	struct nccl_private *private = calloc(1, sizeof(*private));
	struct timespec now;

	if (!data || !private) {
		free(data);
		free(private);
		return NULL;
	}
	clock_gettime(CLOCK_BOOTTIME, &now);
	private->now_boottime_ns =
		(uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
	data->private_state = private;
	return data;
}

static int read_nccl_files(const char *spool, struct dirent **names, int count,
			   struct nccl_data **ret, struct problem *problem)
{
	struct nccl_data *data = allocate_nccl_data();
	int result;

	if (!data)
		return nccl_set_out_of_memory_problem(problem);
	result = open_all_nccl_files(data, spool, names, count, problem);
	if (result == 0 && nccl_read_gpu_kernels(data, spool) < 0)
		result = nccl_set_out_of_memory_problem(problem);
	if (result == 0 &&
	    (nccl_group_ranks_by_communicator(data) < 0 || nccl_identify_job_ranks(data) < 0))
		result = nccl_set_out_of_memory_problem(problem);
	if (result == 0)
		result = nccl_scan_records_of_all_processes(data, problem);
	if (result < 0)
		nccl_data_free(data);
	else
		*ret = data;
	return result;
}

int nccl_data_read_directory(const char *directory, struct nccl_data **ret, struct problem *problem)
{
	struct dirent **names = NULL;
	char *spool;
	int count, result = 0;

	*ret = NULL;
	if (asprintf(&spool, "%s/spool", directory) < 0)
		return nccl_set_out_of_memory_problem(problem);
	count = scandir(spool, &names, is_nccl_record_file_entry, alphasort);
	if (count < 0 && errno != ENOENT)
		result = problem_set(problem, -errno, "cannot read %s: %s", spool, strerror(errno));
	if (count > 0)
		result = read_nccl_files(spool, names, count, ret, problem);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	free(spool);
	return result;
}

void nccl_data_free(struct nccl_data *data)
{
	struct nccl_private *private;

	if (!data)
		return;
	private = nccl_get_private(data);
	for (uint32_t i = 0; i < data->process_count; i++) {
		nccl_file_close(&data->processes[i].file);
		clock_map_deinit(&data->processes[i].clock);
		nccl_kernels_deinit(&data->processes[i].kernels);
		id_map_deinit(&data->processes[i].members);
		free(data->processes[i].proven_gpu_times_bitmap);
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		nccl_gpu_clock_deinit(&data->members[i].gpu_clock);
		free(data->members[i].waiting);
		free(data->members[i].calls);
	}
	for (uint32_t i = 0; i < data->communicator_count; i++)
		free(data->communicators[i].members);
	nccl_host_clock_alignment_deinit(&data->clock_alignment);
	id_map_deinit(&private->files);
	id_map_deinit(&private->communicator_index_by_key);
	id_map_deinit(&private->rank_function_sum_index_by_key);
	id_map_deinit(&private->call_shape_index_by_key);
	id_map_deinit(&private->sequences_in_doubt);
	arena_deinit(&private->arena);
	free(private);
	free(data->processes);
	free(data->members);
	free(data->communicators);
	free(data->hosts);
	free(data->functions);
	free(data->rank_function_sums);
	free(data->job_ranks);
	free(data->call_shapes);
	free(data->differing_calls);
	free(data->missing_job_ranks);
	free(data->problems);
	free(data);
}
