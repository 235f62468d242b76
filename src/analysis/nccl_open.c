/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opening what the NCCL plugin recorded: files, hosts, communicators; see nccl.h. A file that
 * cannot be read is a line in `problems`, not an error.
 */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "analysis/nccl_private.h"

#define RATE_LEAST_NS 100000000 /* between clocks that tell the rate better than the header */

int nccl_out_of_memory(struct problem *problem)
{
	return problem_set(problem, -ENOMEM, "out of memory while reading NCCL records");
}

int nccl_note(struct nccl_data *data, const char *format, ...)
{
	struct nccl_private *private = nccl_private(data);
	char text[sizeof(((struct problem *)0)->text)];
	va_list arguments;
	char *line;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	line = arena_copy(&private->arena, text, strlen(text));
	if (!line || array_reserve((void **)&data->problems, &private->problem_capacity,
				   data->problem_count, sizeof(*data->problems)) < 0)
		return -ENOMEM;
	data->problems[data->problem_count++] = line;
	return 0;
}

uint32_t nccl_function_of(struct nccl_data *data, uint32_t process, uint8_t name)
{
	struct nccl_private *private = nccl_private(data);
	struct nccl_process *from = &data->processes[process];
	const char *text = nccl_file_name(&from->file, name);

	if (from->functions[name] != NCCL_NONE)
		return from->functions[name];
	for (uint32_t i = 0; i < data->function_count; i++) {
		if (!strcmp(data->functions[i].name, text))
			return from->functions[name] = i;
	}
	text = arena_intern(&private->arena, text);
	if (!text || array_reserve((void **)&data->functions, &private->function_capacity,
				   data->function_count, sizeof(*data->functions)) < 0)
		return NCCL_NONE;
	data->functions[data->function_count] =
		(struct nccl_function_name){text, nccl_function_find(text)};
	return from->functions[name] = data->function_count++;
}

/* ---- hosts ---- */

/* Containers of one machine have its boot id, and its clock. */
static int find_host(struct nccl_data *data, const struct nccl_process *process, uint32_t *ret)
{
	struct nccl_private *private = nccl_private(data);
	const struct nccl_file_header *header = &process->file.header;
	struct nccl_host *host;

	for (uint32_t i = 0; i < data->host_count; i++) {
		host = &data->hosts[i];
		*ret = i;
		if (*header->boot_id ? !strcmp(host->boot_id, header->boot_id)
				     : !*host->boot_id && !strcmp(host->name, header->host))
			return 0;
	}
	if (array_reserve((void **)&data->hosts, &private->host_capacity, data->host_count,
			  sizeof(*data->hosts)) < 0)
		return -ENOMEM;
	*ret = data->host_count;
	host = &data->hosts[data->host_count++];
	host->name = arena_intern(&private->arena, header->host);
	host->boot_id = arena_intern(&private->arena, header->boot_id);
	host->realtime_minus_boottime_ns = clock_map_realtime_minus_boottime(&process->clock);
	return host->name && host->boot_id ? 0 : -ENOMEM;
}

/* ---- one process ---- */

/* The header's rate was measured within a millisecond or so, at the start: on virtual machines it
 * is off by up to a percent. After the last clock of a process that was killed that counts, so the
 * rate is taken from the clocks, where they are far enough apart. */
static int read_clock(struct nccl_process *process)
{
	const struct nccl_file_header *header = &process->file.header;
	uint64_t start = header->clocks[0].boottime_ns, latest = start;

	for (unsigned i = 0; i < NCCL_CLOCKS; i++) {
		const struct nccl_clock *clock = &header->clocks[i];
		struct clock_point point = {clock->ticks, clock->boottime_ns, clock->monotonic_ns,
					    clock->realtime_ns};

		if (clock->ticks && clock_map_add(&process->clock, &point) < 0)
			return -ENOMEM;
		if (clock->ticks && clock->boottime_ns > latest)
			latest = clock->boottime_ns;
	}
	clock_map_finish(&process->clock, header->tick_clock                ? 1000000000
					  : latest - start >= RATE_LEAST_NS ? 0
									    : header->tick_hz);
	return 0;
}

/* Field 22 of /proc/PID/stat, behind the name in parentheses; 0: no such process, or a dead one. */
static uint64_t start_of_running(uint32_t pid)
{
	char path[64], text[1024];
	unsigned long long start = 0;
	FILE *stream;
	size_t size;
	char *at, state;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	stream = fopen(path, "re");
	if (!stream)
		return 0;
	size = fread(text, 1, sizeof(text) - 1, stream);
	fclose(stream);
	text[size] = '\0';
	at = strrchr(text, ')');
	if (!at || sscanf(at + 1,
			  " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			  "%*s %llu",
			  &state, &start) != 2)
		return 0;
	return state == 'Z' || state == 'X' ? 0 : start;
}

static bool is_this_boot(const char *boot_id)
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

static enum nccl_ended how_it_ended(const struct nccl_file_header *header)
{
	if (header->state == NCCL_FILE_EXITED)
		return NCCL_ENDED_EXITED;
	if (header->process_start && is_this_boot(header->boot_id) &&
	    start_of_running(header->pid) == header->process_start)
		return NCCL_ENDED_RUNNING;
	return NCCL_ENDED_SILENT;
}

static uint64_t count_lost(const struct nccl_file *file)
{
	const uint64_t *losses = file->header.losses;

	return losses[NCCL_LOSS_OPERATIONS] + losses[NCCL_LOSS_COMMUNICATORS] + file->torn_records +
	       file->torn_chunks + (file->missing_bytes != 0) +
	       (file->header.state == NCCL_FILE_FULL);
}

static int note_damage(struct nccl_data *data, const struct nccl_file *file)
{
	int result = 0;

	if (file->missing_bytes)
		result = nccl_note(data, "%s: cut off: %llu bytes of %llu are missing", file->path,
				   (unsigned long long)file->missing_bytes,
				   (unsigned long long)file->header.file_size);
	if (result == 0 && file->torn_chunks)
		result = nccl_note(data, "%s: %llu damaged chunk%s left out", file->path,
				   (unsigned long long)file->torn_chunks,
				   file->torn_chunks == 1 ? "" : "s");
	if (result == 0 && *file->header.problem)
		result = nccl_note(data, "%s: %s", file->path, file->header.problem);
	return result;
}

struct members {
	struct nccl_data *data;
	uint32_t process;
};

static int add_member(const void *record, void *context)
{
	const struct members *members = context;
	struct nccl_data *data = members->data;
	struct nccl_private *private = nccl_private(data);
	struct nccl_member *member;

	if (array_reserve((void **)&data->members, &private->member_capacity, data->member_count,
			  sizeof(*data->members)) < 0)
		return -ENOMEM;
	member = &data->members[data->member_count];
	*member = (struct nccl_member){.process = members->process, .team = NCCL_NONE};
	memcpy(&member->record, record, sizeof(member->record));
	memcpy(member->name, member->record.name, sizeof(member->record.name));
	member->rank = member->record.rank < 0 ? -1 : member->record.rank;
	member->ranks = member->record.ranks > 0 ? (uint32_t)member->record.ranks : 0;
	member->ranks_inferred = member->record.flags & NCCL_COMMUNICATOR_RANKS_INFERRED;
	return id_map_set(&data->processes[members->process].members, member->record.creation,
			  data->member_count++);
}

/* As its launcher said, or else its rank in the largest communicator. */
static void find_rank(struct nccl_data *data, struct nccl_process *process)
{
	uint32_t largest = 0;

	process->rank = process->file.header.world_rank;
	for (uint32_t i = 0; process->rank < 0 && i < process->member_count; i++) {
		const struct nccl_member *member = &data->members[process->first_member + i];

		if (member->ranks > largest) {
			largest = member->ranks;
			process->rank = member->rank;
		}
	}
	if (process->rank < 0)
		process->rank = -1;
}

static int add_process(struct nccl_data *data, struct nccl_file *file)
{
	struct nccl_private *private = nccl_private(data);
	struct members members = {data, data->process_count};
	struct nccl_process *process;
	int result;

	if (array_reserve((void **)&data->processes, &private->process_capacity,
			  data->process_count, sizeof(*data->processes)) < 0)
		return -ENOMEM;
	process = &data->processes[data->process_count++];
	*process = (struct nccl_process){.file = *file,
					 .first_member = data->member_count,
					 .ended = how_it_ended(&file->header),
					 .lost_operations = count_lost(file),
					 .overwritten =
						 file->header.losses[NCCL_LOSS_RING_OPERATIONS]};
	*file = (struct nccl_file){.descriptor = -1};
	for (unsigned i = 0; i < NCCL_NAMES; i++)
		process->functions[i] = NCCL_NONE;
	result = read_clock(process);
	if (result == 0)
		result = find_host(data, process, &process->host);
	if (result == 0)
		result = nccl_file_each(&process->file, NCCL_CHUNK_COMMUNICATORS, add_member,
					&members);
	process->member_count = data->member_count - process->first_member;
	process->start_ticks = process->file.header.clocks[0].ticks;
	process->last_ticks = process->file.header.heartbeat_ticks;
	if (process->last_ticks < process->start_ticks)
		process->last_ticks = process->start_ticks;
	find_rank(data, process);
	if (result == 0)
		result = note_damage(data, &process->file);
	nccl_file_pause(&process->file);
	return result;
}

/* ---- all files ---- */

/* Results that were copied, and are read with the original. 1: it is known; or negative errno. */
static int is_known(struct nccl_data *data, const struct nccl_file *file)
{
	struct nccl_private *private = nccl_private(data);
	const struct nccl_file_header *header = &file->header;
	uint64_t key = id_map_mix((uint64_t)header->pid << 32 | header->file_number) ^
		       id_map_mix(header->process_start + header->nonce) ^
		       id_map_mix(header->clocks[0].ticks);
	uint32_t known;

	for (const char *at = header->boot_id; *at; at++)
		key = id_map_mix(key + (unsigned char)*at);
	known = id_map_get(&private->files, key);
	if (known != ID_MAP_NONE)
		return nccl_note(data, "%s is the same as %s: left out", file->path,
				 data->processes[known].file.path) < 0
			       ? -ENOMEM
			       : 1;
	return id_map_set(&private->files, key, data->process_count);
}

static int try_file(struct nccl_data *data, const char *path)
{
	struct problem problem;
	struct nccl_file file;
	int result = nccl_file_open(path, &file, &problem);

	if (result == -ENOMEM)
		return result;
	if (result < 0) {
		data->unreadable_files++;
		return nccl_note(data, "%s", problem.text);
	}
	result = is_known(data, &file);
	if (result == 0)
		result = add_process(data, &file);
	nccl_file_close(&file); /* of nothing, once the process has it */
	return result == -ENOMEM ? result : 0;
}

static int is_record_file(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 5 && !strcmp(entry->d_name + length - 5, ".nccl");
}

static int open_all(struct nccl_data *data, const char *spool, struct dirent **names, int count,
		    struct problem *problem)
{
	struct nccl_private *private = nccl_private(data);
	int result = 0;

	for (int i = 0; result == 0 && i < count; i++) {
		char *path = arena_format(&private->arena, "%s/%s", spool, names[i]->d_name);

		result = path ? try_file(data, path) : -ENOMEM;
	}
	return result < 0 ? nccl_out_of_memory(problem) : 0;
}

static struct nccl_data *make_data(void)
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

static int read_data(const char *spool, struct dirent **names, int count, struct nccl_data **ret,
		     struct problem *problem)
{
	struct nccl_data *data = make_data();
	int result;

	if (!data)
		return nccl_out_of_memory(problem);
	result = open_all(data, spool, names, count, problem);
	if (result == 0 && nccl_read_kernels(data, spool) < 0)
		result = nccl_out_of_memory(problem);
	if (result == 0 && nccl_make_teams(data) < 0)
		result = nccl_out_of_memory(problem);
	if (result == 0)
		result = nccl_survey(data, problem);
	if (result < 0)
		nccl_close(data);
	else
		*ret = data;
	return result;
}

int nccl_open(const char *directory, struct nccl_data **ret, struct problem *problem)
{
	struct dirent **names = NULL;
	char *spool;
	int count, result = 0;

	*ret = NULL;
	if (asprintf(&spool, "%s/spool", directory) < 0)
		return nccl_out_of_memory(problem);
	count = scandir(spool, &names, is_record_file, alphasort);
	if (count < 0 && errno != ENOENT)
		result = problem_set(problem, -errno, "cannot read %s: %s", spool, strerror(errno));
	if (count > 0)
		result = read_data(spool, names, count, ret, problem);
	for (int i = 0; i < count; i++)
		free(names[i]);
	free(names);
	free(spool);
	return result;
}

void nccl_close(struct nccl_data *data)
{
	struct nccl_private *private;

	if (!data)
		return;
	private = nccl_private(data);
	for (uint32_t i = 0; i < data->process_count; i++) {
		nccl_file_close(&data->processes[i].file);
		clock_map_deinit(&data->processes[i].clock);
		nccl_kernels_deinit(&data->processes[i].kernels);
		id_map_deinit(&data->processes[i].members);
		free(data->processes[i].proven);
	}
	for (uint32_t i = 0; i < data->member_count; i++) {
		nccl_gpu_clock_deinit(&data->members[i].gpu);
		free(data->members[i].waiting);
	}
	for (uint32_t i = 0; i < data->team_count; i++)
		free(data->teams[i].members);
	nccl_align_deinit(&data->align);
	id_map_deinit(&private->files);
	id_map_deinit(&private->teams);
	id_map_deinit(&private->sums);
	arena_deinit(&private->arena);
	free(private);
	free(data->processes);
	free(data->members);
	free(data->teams);
	free(data->hosts);
	free(data->functions);
	free(data->sums);
	free(data->problems);
	free(data);
}
