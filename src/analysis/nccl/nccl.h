/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the NCCL plugin recorded in all processes of a result, ready for outputs.
 *
 * A *process* is one file. A *member* is a communicator as one of its ranks has it, a
 * *communicator* all of its ranks together: members with the same hash, and where one process made
 * several of that hash and rank one after the other, the first ones together, the second ones, and
 * so on.
 *
 * Life: nccl_data_read_directory() reads heads and communicators of all files; then one pass over
 * the records sums them up, bounds the clocks of GPUs and hosts, and keeps what was in flight.
 * After that the model is immutable. Of an operation it keeps a bit: whether its GPU times are its
 * own (order.h), for which the operations of one communicator of one rank are in memory for a
 * while, 56 bytes each. Nothing else in it grows with their number;
 * nccl_visit_operations_of_process() and nccl_visit_events_of_process() stream over them, and
 * join.h joins ranks.
 *
 * Times are ns of CLOCK_BOOTTIME of host 0, unless said. Strings are never NULL; they come from
 * files and may be any bytes (escape). Not thread-safe.
 */
#ifndef KYMO_ANALYSIS_NCCL_NCCL_H
#define KYMO_ANALYSIS_NCCL_NCCL_H

#include <stdbool.h>

#include "analysis/clocks.h"
#include "analysis/nccl/align.h"
#include "analysis/nccl/gpu_clock.h"
#include "analysis/nccl/kernels.h"
#include "analysis/nccl/reader.h"
#include "analysis/nccl/tally.h"
#include "analysis/session.h"

#define NCCL_INDEX_NONE UINT32_MAX
#define NCCL_WAITING_OPERATIONS_MAX                                                                \
	4 /* unfinished operations of a member that are kept: the oldest */

enum nccl_process_end_state {
	NCCL_PROCESS_RUNNING,       /* it is still there, on this machine */
	NCCL_PROCESS_EXITED,        /* exit handlers ran */
	NCCL_PROCESS_ENDED_SILENTLY /* without a word: SIGKILL, a crash, _exit; or running elsewhere
				     */
};

struct nccl_process {
	struct nccl_file file;
	struct clock_map clock; /* ticks to its own host's CLOCK_BOOTTIME */
	uint32_t host;
	uint32_t first_member_index, member_count;
	int32_t rank; /* in the job, as its launcher said or, of a process with one rank, as its
			 ranks have it; -1 */
	uint32_t ranks_in_process; /* of one communicator, at most: one for each of its GPUs */
	enum nccl_process_end_state ended;
	uint64_t start_ticks, last_ticks;     /* first and last sign of life */
	uint64_t known_until_ns;              /* known up to here; now, where it still runs */
	uint64_t operations, events;          /* records read */
	uint64_t lost_operation_count;        /* could not be recorded, or are torn */
	uint64_t overwritten_operation_count; /* by newer ones: the oldest operations */
	uint32_t functions[NCCL_NAMES]; /* index in nccl_data.functions by name, or NCCL_INDEX_NONE
					 */
	struct id_map members;          /* creation -> index in nccl_data.members */
	struct nccl_kernels kernels;    /* as the GPU's own records have them, if there are any */
	uint8_t *proven_gpu_times_bitmap; /* bit by place of an operation's record: its GPU times
					     are its own */
	size_t proven_gpu_times_bitmap_bytes;
};

/* A clock, in other words: processes with the same boot id. */
struct nccl_host_clock_info {
	const char *name, *boot_id;
	int64_t realtime_minus_boottime_ns;
};

struct nccl_named_function {
	const char *name;
	enum nccl_function_kind function;
};

/* An operation that had not ended, and what of it was open. */
struct nccl_waiting_operation {
	struct nccl_operation record;
	uint32_t function;
};

/* Sums of one function in one member. */
struct nccl_rank_function_sums {
	uint32_t member, function;
	uint64_t first_sequence, last_sequence; /* collectives, of the operations `seen` */
	bool seen;
	struct nccl_operation_tally tally;
};

struct nccl_communicator_rank {
	uint32_t process, communicator;
	uint32_t place_in_communicator; /* in its `members` */
	struct nccl_communicator_record record;
	char name[sizeof(((struct nccl_communicator_record *)0)->name) + 1];
	int32_t rank;        /* -1 unknown */
	uint32_t rank_count; /* 0 unknown */
	bool is_rank_count_inferred;
	int32_t job_rank;        /* -1 unknown */
	uint32_t job_rank_index; /* in nccl_data.job_ranks */
	struct nccl_gpu_clock_model gpu_clock;
	uint64_t operations;
	uint64_t last_ticks; /* start of the last operation */
	uint64_t worst_gpu_clock_error_ns;
	struct nccl_waiting_operation
		*waiting;                 /* NCCL_WAITING_OPERATIONS_MAX of them, by ordinal */
	uint64_t ran;                     /* highest ordinal of one whose kernel was seen, + 1 */
	uint64_t waiting_operation_count; /* there may be more than are kept */
	struct nccl_operation last_operation; /* the one with the highest ordinal */
	uint32_t last_operation_function;
	bool has_last_operation;
	/* Until all is read (calls.h): the shapes of its collectives, in order. */
	uint32_t *calls;
	size_t call_count, call_capacity;
	uint64_t next_ordinal;
	bool has_gap_in_calls; /* operations are missing: nobody knows which calls they were */
};

/* Of its unfinished operations, those that are kept. */
static inline uint64_t
nccl_get_kept_waiting_operation_count(const struct nccl_communicator_rank *member)
{
	return member->waiting_operation_count < NCCL_WAITING_OPERATIONS_MAX
		       ? member->waiting_operation_count
		       : NCCL_WAITING_OPERATIONS_MAX;
}

enum nccl_job_ranks_basis {
	NCCL_JOB_RANKS_UNKNOWN,
	NCCL_JOB_RANKS_BY_LAUNCHER,    /* its variables */
	NCCL_JOB_RANKS_BY_COMMUNICATOR /* the widest, that all processes are in */
};

/* A rank of the job: all members of one process that belong to one GPU. */
struct nccl_job_rank {
	uint32_t process, first_member; /* NCCL_INDEX_NONE: it has no communicator */
	int32_t rank;                   /* -1 unknown */
};

struct nccl_communicator {
	uint64_t hash;
	uint32_t same_hash_index;
	const char *name;
	uint32_t rank_count; /* 0 unknown */
	bool is_rank_count_inferred;
	uint32_t *members; /* by rank */
	uint32_t member_count;
	uint32_t missing_rank_count; /* of which there is no member */
	bool has_differing_calls;    /* of other functions (calls.h) */
};

struct nccl_call_shape;
struct nccl_differing_call;

struct nccl_data {
	struct nccl_process *processes;
	struct nccl_communicator_rank *members;
	struct nccl_communicator *communicators;
	struct nccl_host_clock_info *hosts;
	struct nccl_named_function *functions;
	struct nccl_rank_function_sums *rank_function_sums;
	uint32_t process_count, member_count, communicator_count, host_count, function_count,
		rank_function_sum_count;
	struct nccl_job_rank *job_ranks;
	uint32_t job_rank_count;
	uint32_t job_size;            /* ranks that the job has; 0 unknown */
	uint32_t widest_communicator; /* that every process is in; NCCL_INDEX_NONE */
	enum nccl_job_ranks_basis job_ranks_basis;
	int32_t *missing_job_ranks; /* of job_size, those without records */
	uint32_t missing_job_rank_count;
	struct nccl_call_shape *call_shapes; /* calls.h */
	struct nccl_differing_call *differing_calls;
	uint32_t call_shape_count, differing_call_count;
	uint64_t unreadable_files;
	char **problems; /* one line each */
	size_t problem_count;
	uint64_t start_ns, end_ns;
	struct nccl_host_clock_alignment clock_alignment;
	void *private_state;
};

/* Reads <directory>/spool/ *.nccl. *ret is NULL, and 0 returned, where there are none. */
int nccl_data_read_directory(const char *directory, struct nccl_data **ret,
			     struct problem *problem);
void nccl_data_free(struct nccl_data *data);

/* ---- times ---- */

/* Times on the clock of the process's own host, and on that of host 0. */
uint64_t nccl_ticks_to_host_time(struct nccl_process *process, uint64_t ticks);
uint64_t nccl_ticks_to_common_time(struct nccl_data *data, uint32_t process, uint64_t ticks);
/* A time of a host, as host 0 has it. */
uint64_t nccl_host_time_to_common_time(const struct nccl_data *data, uint32_t host,
				       uint64_t time_ns);
/* A GPU time in ns, whatever it counts; and on the host, with the error of the GPU's clock. */
uint64_t nccl_gpu_stamp_to_gpu_ns(const struct nccl_data *data,
				  const struct nccl_communicator_rank *member, uint64_t gpu);
bool nccl_gpu_stamp_to_common_time(const struct nccl_data *data,
				   const struct nccl_communicator_rank *member, uint64_t gpu,
				   struct nccl_gpu_time_on_host *ret);

/* ---- one operation ---- */

/* NCCL's stamps lie within the kernel: behind the loading of its arguments, and before its end. So
 * much longer it is by CUPTI's times: 2.72 us at 8 B to 3.2 us at 16 MB, 90 of 100 within 0.2 us of
 * that, on H200 with NCCL 2.28.9. RCCL's stamps are not known to, and are left as they are. */
#define NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS 2900

/* What a duration by stamps of this process leaves out. */
uint64_t nccl_get_kernel_time_outside_stamps_ns(const struct nccl_process *process);

enum nccl_timing_source {
	NCCL_TIMING_BY_GPU,            /* first start to last stop of its channels, by the GPU, and
				       NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS */
	NCCL_TIMING_BY_KERNEL_RECORD,  /* of its kernel, which ran nothing else, by the GPU's own
					  record */
	NCCL_TIMING_BY_NETWORK,        /* first start to last stop of its transfers, by the host */
	NCCL_TIMING_UNKNOWN,           /* nothing says when it ran */
	NCCL_TIMING_SHARED_BY_SEVERAL, /* of several operations together: a batch, or overrun times
					*/
	NCCL_TIMING_UNFINISHED         /* it has not ended */
};

struct nccl_operation_view {
	const struct nccl_operation *record;
	uint32_t process, member, function;
	enum nccl_timing_source timing_source;
	uint64_t duration_ns; /* GPU, KERNEL, NETWORK, and SHARED: of a batch together; 0 else */
	uint64_t channel_stamps_span_ns; /* between its channels' stamps, whoever's they are; 0:
					    none */
	uint32_t flags; /* nccl_operation_flag; ALIASED: GPU times are not proven its own */
	const struct nccl_kernel *kernel; /* that ran it; NULL: not known, or not needed */
	uint64_t size_bytes;              /* as nccl-tests counts */
	bool is_size_known, is_waiting;
	uint8_t state; /* nccl_operation_state, also where the process ended before it was told */
	double bus_factor; /* 0: not known */
	/* When it began and ended to run, by the best there is; on host 0's clock. 0: not known. */
	uint64_t begin_ns, end_ns, begin_error_ns;
	bool is_begin_known; /* false: begin_ns is when it was enqueued */
	uint64_t enqueue_begin_ns, enqueue_end_ns;
};

/* In the order of recording, process by process. */
int nccl_visit_operations_of_process(struct nccl_data *data, uint32_t process,
				     int (*each)(const struct nccl_operation_view *view,
						 void *context),
				     void *context, struct problem *problem);
/* Events other than operations; `member` is NCCL_INDEX_NONE for those of a communicator that was
 * not recorded. */
int nccl_visit_events_of_process(struct nccl_data *data, uint32_t process,
				 int (*each)(const struct nccl_event *event, uint32_t process,
					     uint32_t member, void *context),
				 void *context, struct problem *problem);

/* ---- names ---- */

const char *nccl_get_operation_state_name(uint8_t state);
const char *nccl_get_timing_source_name(enum nccl_timing_source timing);
/* The duration is of the operation alone. */
bool nccl_timing_source_is_of_one_operation(enum nccl_timing_source timing);
const char *nccl_get_loss_name(enum nccl_loss loss);    /* NULL: not used */
const char *nccl_get_loss_text(enum nccl_loss loss);    /* for people; NULL: not used */
bool nccl_loss_means_missing_data(enum nccl_loss loss); /* something is missing because of it */
bool nccl_loss_is_usual(enum nccl_loss loss); /* healthy jobs have it: no person need know */
const char *nccl_get_event_kind_name(uint8_t kind);
const char *nccl_get_process_end_state_name(enum nccl_process_end_state ended);
/* Index in data.functions of a function in a process's names; NCCL_INDEX_NONE: out of memory. */
uint32_t nccl_find_or_add_function(struct nccl_data *data, uint32_t process, uint8_t name);
const char *nccl_get_interned_name(const struct nccl_data *data, uint32_t process, uint8_t name);

#define NCCL_DATA_KIND_NAME "nccl"

extern const struct session_data_kind_operations nccl_data_kind_operations;

/* NULL: no process had the plugin. */
static inline struct nccl_data *session_get_nccl_data(const struct session *session)
{
	return session_find_kind_data(session, NCCL_DATA_KIND_NAME);
}

#endif
