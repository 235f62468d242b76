/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See plugin.h. The first communicator of the process begins the recording; nothing of it is ever
 * taken down again: NCCL may unload its plugin while communicators live (the library stays, -z
 * nodelete), finalize may never come, and events come after it.
 */
#include "nccl/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/rank.h"
#include "nccl/clock.h"
#include "nccl/helper.h"
#include "nccl/log.h"
#include "nccl/names.h"
#include "nccl/options.h"
#include "nccl/session.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum { NOT_TRIED, RECORDING, OFF } status;
static bool is_child; /* of a process that records */
/* Context of communicators while nothing is recorded: NULL would make NCCL before 2.28 crash. */
static char off;

/* ---- fork ---- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	helper_before_fork();
}

static void after_fork(void)
{
	helper_after_fork();
	pthread_mutex_unlock(&lock);
}

/* The file is the parent's, and the own thread is not here. */
static void in_child(void)
{
	atomic_store(&recorder_on, 0);
	is_child = status == RECORDING;
	status = status == RECORDING ? OFF : status;
	store_leave();
	call_trace_leave();
	after_fork();
}

/* ---- who and where ---- */

static void read_word(const char *path, char *ret, size_t size)
{
	FILE *in = fopen(path, "re");

	if (in && fgets(ret, (int)size, in))
		ret[strcspn(ret, "\n")] = 0;
	if (in)
		fclose(in);
}

/* Field 22 of /proc/self/stat; the second one is in parentheses and may hold anything. */
static uint64_t process_start(void)
{
	char text[1024] = "", *at;
	unsigned field = 2;

	read_word("/proc/self/stat", text, sizeof(text));
	at = strrchr(text, ')');
	while (at && field < 22) {
		at = strchr(at + 1, ' ');
		field++;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

static int variable(const char *name, int otherwise)
{
	const char *value = getenv(name);

	return value && *value >= '0' && *value <= '9' ? atoi(value) : otherwise;
}

static void describe_job(struct nccl_file_header *header)
{
	static const char *const local[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
					    "MPI_LOCALRANKID", "SLURM_LOCALID"};
	static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
					   "TORCHELASTIC_RUN_ID"};
	struct rank rank = {0};
	bool known = rank_from_environment(environ, &rank);

	/* torchrun */
	header->world_rank = variable("RANK", known ? (int)rank.rank : -1);
	header->world_size = variable("WORLD_SIZE", known && rank.size ? (int)rank.size : -1);
	header->local_rank = -1;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]) && header->local_rank < 0; i++)
		header->local_rank = variable(local[i], -1);
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]) && !header->job[0]; i++) {
		const char *value = getenv(jobs[i]);

		if (value)
			strncpy(header->job, value, sizeof(header->job) - 1);
	}
}

/* The library that called us says its version. It is loaded, so nothing new is. */
static void describe_nccl(struct nccl_file_header *header, const void *caller)
{
	int (*get_version)(int *version);
	int version = 0;
	Dl_info info;
	void *library;

	if (!dladdr(caller, &info) || !info.dli_fname)
		return;
	header->rccl = strstr(info.dli_fname, "rccl") != NULL;
	library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return;
	*(void **)&get_version = dlsym(library, "ncclGetVersion");
	if (get_version && !get_version(&version))
		header->nccl_version = (uint32_t)version;
	dlclose(library);
}

static void describe(const struct plugin_init *init, uint64_t hz)
{
	struct nccl_file_header *header = store.header;
	ssize_t length;

	memcpy(header->magic, NCCL_FILE_MAGIC, sizeof(header->magic));
	header->version_major = NCCL_FILE_VERSION_MAJOR;
	header->version_minor = NCCL_FILE_VERSION_MINOR;
	header->header_size = NCCL_HEADER_SIZE;
	header->pid = (uint32_t)getpid();
	header->parent_pid = (uint32_t)getppid();
	header->process_start = process_start();
	header->tick_clock = kymo_ticks_are_ns;
	header->tick_hz = hz;
	header->api = init->api;
	header->mask_default = !options.events_given;
	header->ring = store.ring;
	header->size_limit = options.size;
	header->stall_limit_ns = options.stall_ns;
	header->gpu_clock_hz = options.gpu_clock_hz;
	gethostname(header->host, sizeof(header->host) - 1);
	read_word("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof(header->boot_id));
	length = readlink("/proc/self/exe", header->program, sizeof(header->program) - 1);
	if (length < 0)
		header->program[0] = 0;
	describe_job(header);
	describe_nccl(header, init->caller);
	SET(header->state, NCCL_FILE_OPEN);
}

/* ---- the beginning ---- */

static void begin_call_trace(void)
{
	int failed = call_trace_begin(options.call_trace);

	if (!failed)
		return;
	log_problem("KYMO_NCCL_CALL_TRACE: '%s' cannot be written: %s", options.call_trace,
		    strerror(-failed));
	helper_tell("the call trace cannot be written (NCCL_CALL_TRACE)");
}

static int begin_recording(const struct plugin_init *init, char *directory, size_t size)
{
	uint64_t hz = ticks_init();
	int result = session_directory(directory, size);

	if (!result)
		result = store_open(directory, options.size, options.ring);
	if (result)
		return result;
	describe(init, hz);
	names_begin();
	result = communicators_begin();
	if (result)
		return result;
	if (options.size_moved)
		helper_tell("the file is of another size than was asked for (NCCL_SIZE takes 4M to "
			    "16G)");
	if (*options.call_trace)
		begin_call_trace();
	/* Before the thread, which ends when it is off. */
	atomic_store(&recorder_on, call_trace_is_on() ? RECORDER_TRACED : RECORDER_PLAIN);
	result = helper_start();
	if (result)
		atomic_store(&recorder_on, 0);
	return result;
}

static void begin(const struct plugin_init *init)
{
	static char directory[PATH_MAX];
	int result;

	options_read();
	if (!options.enabled) {
		log_info("nothing is recorded: KYMO_ENABLED is off");
		status = OFF;
		return;
	}
	result = begin_recording(init, directory, sizeof(directory));
	if (result) {
		log_problem("nothing is recorded: '%s': %s", directory, strerror(-result));
		status = OFF;
		return;
	}
	status = RECORDING;
	pthread_atfork(before_fork, after_fork, in_child);
	log_info("records events 0x%x of NCCL %u through version %u of the plugin API in %s",
		 options_mask(init->api), GET(store.header->nccl_version), init->api, store.path);
}

/* Not from finalize: many programs end without it. */
__attribute__((destructor)) static void at_exit(void)
{
	helper_finish();
}

static void add_communicator(const struct plugin_init *init)
{
	struct communicator_identity identity = {
		.name = init->name,
		.hash = init->hash,
		.nodes = init->nodes,
		.ranks = init->ranks,
		.rank = init->rank,
		.api = init->api,
		.mask = options_mask(init->api) & ~recorder_given_up(),
		.nccl_mask = init->mask,
	};

	names_forget_addresses();
	helper_make_room();
	*init->context = communicators_add(&identity);
	if (init->mask)
		__atomic_store_n(init->mask, (int)identity.mask, __ATOMIC_RELAXED);
	SET(store.header->mask, identity.mask);
	if (call_trace_is_on())
		call_trace_init(*init->context, &identity);
}

int plugin_init(const struct plugin_init *init)
{
	*init->context = &off;
	pthread_mutex_lock(&lock);
	log_use(init->logger);
	if (status == NOT_TRIED)
		begin(init);
	else if (is_child)
		log_info("nothing is recorded: this process was forked from one that records");
	if (status == RECORDING)
		add_communicator(init);
	pthread_mutex_unlock(&lock);
	return NCCL_SUCCESS;
}

int plugin_finalize(void *context)
{
	if (!recorder_is_on())
		return NCCL_SUCCESS;
	if (call_trace_is_on())
		call_trace_finalize(context);
	recorder_finalize(context);
	return NCCL_SUCCESS;
}

int plugin_stop(void *handle)
{
	if (__builtin_expect(!recorder_is_plain(), 0)) {
		if (!recorder_is_on())
			return NCCL_SUCCESS;
		call_trace_stop(handle);
	}
	recorder_stop(handle);
	return NCCL_SUCCESS;
}
