/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the NCCL plugin recorded in all processes of a result, ready for outputs.
 *
 * A *process* is one file. A *member* is a communicator as one of its ranks has it, a *team* all of
 * its ranks together: members with the same hash, and where one process made several of that hash
 * and rank one after the other, the first ones together, the second ones, and so on.
 *
 * Life: nccl_open() reads heads and communicators of all files; then one pass over the records
 * sums them up, bounds the clocks of GPUs and hosts, and keeps what was in flight. After that the
 * model is immutable. Of an operation it keeps a bit: whether its GPU times are its own
 * (nccl_order.h), for which the operations of one communicator of one rank are in memory for a
 * while, 56 bytes each. Nothing else in it grows with their number; nccl_each_operation() and
 * nccl_each_event() stream over them, and nccl_join.h joins ranks.
 *
 * Times are ns of CLOCK_BOOTTIME of host 0, unless said. Strings are never NULL; they come from
 * files and may be any bytes (escape). Not thread-safe.
 */
#ifndef KYMO_ANALYSIS_NCCL_H
#define KYMO_ANALYSIS_NCCL_H

#include <stdbool.h>

#include "analysis/clocks.h"
#include "analysis/nccl_align.h"
#include "analysis/nccl_gpu_clock.h"
#include "analysis/nccl_kernels.h"
#include "analysis/nccl_reader.h"
#include "analysis/nccl_tally.h"

#define NCCL_NONE         UINT32_MAX
#define NCCL_WAITING_KEPT 4 /* unfinished operations of a member that are kept: the oldest */

enum nccl_ended {
	NCCL_ENDED_RUNNING, /* it is still there, on this machine */
	NCCL_ENDED_EXITED,  /* exit handlers ran */
	NCCL_ENDED_SILENT   /* without a word: SIGKILL, a crash, _exit; or running elsewhere */
};

struct nccl_process {
	struct nccl_file file;
	struct clock_map clock; /* ticks to its own host's CLOCK_BOOTTIME */
	uint32_t host;
	uint32_t first_member, member_count;
	int32_t rank; /* in the job: as its launcher said, or of its largest communicator; -1 */
	enum nccl_ended ended;
	uint64_t start_ticks, last_ticks; /* first and last sign of life */
	uint64_t until_ns;                /* known up to here; now, where it still runs */
	uint64_t operations, events;      /* records read */
	uint64_t lost_operations;         /* could not be recorded, or are torn */
	uint64_t overwritten;             /* by newer ones: the oldest operations */
	uint32_t functions[NCCL_NAMES];   /* index in nccl_data.functions by name, or NCCL_NONE */
	struct id_map members;            /* creation -> index in nccl_data.members */
	struct nccl_kernels kernels;      /* as the GPU's own records have them, if there are any */
	uint8_t *proven; /* bit by place of an operation's record: its GPU times are its own */
	size_t proven_size;
};

/* A clock, in other words: processes with the same boot id. */
struct nccl_host {
	const char *name, *boot_id;
	int64_t realtime_minus_boottime_ns;
};

struct nccl_function_name {
	const char *name;
	enum nccl_function function;
};

/* An operation that had not ended, and what of it was open. */
struct nccl_waiting {
	struct nccl_operation record;
	uint32_t function;
};

/* Sums of one function in one member. */
struct nccl_sum {
	uint32_t member, function;
	uint64_t first_sequence, last_sequence; /* collectives, of the operations `seen` */
	bool seen;
	struct nccl_tally tally;
};

struct nccl_member {
	uint32_t process, team;
	struct nccl_communicator record;
	char name[sizeof(((struct nccl_communicator *)0)->name) + 1];
	int32_t rank;   /* -1 unknown */
	uint32_t ranks; /* 0 unknown */
	bool ranks_inferred;
	struct nccl_gpu_line gpu;
	uint64_t operations;
	uint64_t last_ticks; /* start of the last operation */
	uint64_t worst_gpu_error_ns;
	struct nccl_waiting *waiting; /* NCCL_WAITING_KEPT of them, by ordinal */
	uint64_t ran;                 /* highest ordinal of one whose kernel was seen, + 1 */
	uint64_t waiting_count;       /* there may be more than are kept */
	struct nccl_operation last;   /* the one with the highest ordinal */
	uint32_t last_function;
	bool has_last;
};

struct nccl_team {
	uint64_t hash;
	uint32_t occurrence;
	const char *name;
	uint32_t ranks; /* 0 unknown */
	bool ranks_inferred;
	uint32_t *members; /* by rank */
	uint32_t member_count;
};

struct nccl_data {
	struct nccl_process *processes;
	struct nccl_member *members;
	struct nccl_team *teams;
	struct nccl_host *hosts;
	struct nccl_function_name *functions;
	struct nccl_sum *sums;
	uint32_t process_count, member_count, team_count, host_count, function_count, sum_count;
	uint64_t unreadable_files;
	char **problems; /* one line each */
	size_t problem_count;
	uint64_t start_ns, end_ns;
	struct nccl_align align;
	void *private_state;
};

/* Reads <directory>/spool/ *.nccl. *ret is NULL, and 0 returned, where there are none. */
int nccl_open(const char *directory, struct nccl_data **ret, struct problem *problem);
void nccl_close(struct nccl_data *data);

/* ---- times ---- */

/* Of the process's own host, and of host 0. */
uint64_t nccl_own_time(struct nccl_process *process, uint64_t ticks);
uint64_t nccl_time(struct nccl_data *data, uint32_t process, uint64_t ticks);
/* A time of a host, as host 0 has it. */
uint64_t nccl_common_time(const struct nccl_data *data, uint32_t host, uint64_t time_ns);
/* A GPU time in ns, whatever it counts; and on the host, with the error of the GPU's clock. */
uint64_t nccl_gpu_ns(const struct nccl_data *data, const struct nccl_member *member, uint64_t gpu);
bool nccl_gpu_time(const struct nccl_data *data, const struct nccl_member *member, uint64_t gpu,
		   struct nccl_host_time *ret);

/* ---- one operation ---- */

/* NCCL's stamps lie within the kernel: behind the loading of its arguments, and before its end. So
 * much longer it is by CUPTI's times: 2.72 us at 8 B to 3.2 us at 16 MB, 90 of 100 within 0.2 us of
 * that, on H200 with NCCL 2.28.9. RCCL's stamps are not known to, and are left as they are. */
#define NCCL_KERNEL_AROUND_NS 2900

/* What a duration by stamps of this process leaves out. */
uint64_t nccl_kernel_around_ns(const struct nccl_process *process);

enum nccl_timing {
	NCCL_TIMING_GPU,     /* first start to last stop of its channels, by the GPU, and
				NCCL_KERNEL_AROUND_NS */
	NCCL_TIMING_KERNEL,  /* of its kernel, which ran nothing else, by the GPU's own record */
	NCCL_TIMING_NETWORK, /* first start to last stop of its transfers, by the host */
	NCCL_TIMING_NONE,    /* nothing says when it ran */
	NCCL_TIMING_SHARED,  /* of several operations together: a batch, or overrun times */
	NCCL_TIMING_OPEN     /* it has not ended */
};

struct nccl_view {
	const struct nccl_operation *record;
	uint32_t process, member, function;
	enum nccl_timing timing;
	uint64_t duration_ns; /* GPU, KERNEL, NETWORK, and SHARED: of a batch together; 0 else */
	uint64_t stamped_ns;  /* between its channels' stamps, whoever's they are; 0: none */
	uint32_t flags;       /* nccl_operation_flag; ALIASED: GPU times are not proven its own */
	const struct nccl_kernel *kernel; /* that ran it; NULL: not known, or not needed */
	uint64_t size_bytes;              /* as nccl-tests counts */
	bool size_known, is_waiting;
	uint8_t state; /* nccl_operation_state, also where the process ended before it was told */
	double bus_factor; /* 0: not known */
	/* When it began and ended to run, by the best there is; on host 0's clock. 0: not known. */
	uint64_t begin_ns, end_ns, begin_error_ns;
	bool begin_known; /* false: begin_ns is when it was enqueued */
	uint64_t enqueue_ns, enqueued_ns;
};

/* In the order of recording, process by process. */
int nccl_each_operation(struct nccl_data *data, uint32_t process,
			int (*each)(const struct nccl_view *view, void *context), void *context,
			struct problem *problem);
/* Events other than operations; `member` is NCCL_NONE for those of a communicator that was not
 * recorded. */
int nccl_each_event(struct nccl_data *data, uint32_t process,
		    int (*each)(const struct nccl_event *event, uint32_t process, uint32_t member,
				void *context),
		    void *context, struct problem *problem);

/* ---- names ---- */

const char *nccl_state_name(uint8_t state);
const char *nccl_timing_name(enum nccl_timing timing);
/* The duration is of the operation alone. */
bool nccl_timing_is_own(enum nccl_timing timing);
const char *nccl_loss_name(enum nccl_loss loss);      /* NULL: not used */
const char *nccl_loss_explained(enum nccl_loss loss); /* for people; NULL: not used */
bool nccl_loss_is_data(enum nccl_loss loss);          /* something is missing because of it */
const char *nccl_kind_name(uint8_t kind);
const char *nccl_ended_name(enum nccl_ended ended);
/* Index in data.functions of a function in a process's names; NCCL_NONE: out of memory. */
uint32_t nccl_function_of(struct nccl_data *data, uint32_t process, uint8_t name);
const char *nccl_text_of(const struct nccl_data *data, uint32_t process, uint8_t name);

#endif
