/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the NCCL profiler plugin leaves behind: one file a process,
 * `<session>/spool/nccl-<pid>-<n>.nccl`. Records are updated in memory, which is written every 50
 * ms and, by a task that outlives the process, at its end: the file says what was in flight also
 * after SIGKILL. Until then that task holds a lock of the file (F_OFD_SETLK). Little endian.
 *
 *   file  := nccl_file_header (4096 bytes) names (8192 bytes) chunk*
 *   names := NCCL_NAMES times NCCL_NAME_SIZE bytes, zero-terminated: functions, data types,
 *            algorithms, protocols. Records name them by their index; 0 is none.
 *   chunk := nccl_chunk_header (64 bytes) record* (all of the size that the chunk's kind says)
 *
 * Chunks have NCCL_CHUNK_SIZE bytes and follow each other up to `file_size` of the header. A record
 * whose `id` is 0 was never written; one with an id can be read at any time. A chunk that was never
 * taken has kind 0. In ring mode (NCCL_FULL=ring) the chunk whose records have been finished
 * longest is used again: chunks are in order of `sequence`, and what went is counted in `losses`.
 *
 * An id is what NCCL got as the handle of an event, or as the context of a communicator:
 *   bits 60-63 NCCL_ID_MAGIC, bits 48-59 nonce of the process, bits 28-47 generation of the chunk,
 *   bits 0-27 offset of the record in the file, in units of 64 bytes.
 * So a parent is found by its offset, and is the one meant if its id is equal.
 *
 * Host times are ticks (of `tick_clock`, like in spool files) and become clock time by the `clocks`
 * of the header. GPU times are NCCL's `pTimer` as it was; what they are in host time is for readers
 * to find: for the records of a communicator, `launch start - gpu_start` of each operation bounds
 * the difference of the clocks from below and `stop - gpu_stop` of each KERNEL_CHANNEL event from
 * above (host in ns of CLOCK_REALTIME or MONOTONIC); the header's `gpu_clock` says what was seen.
 */
#ifndef KYMO_NCCL_RECORDS_H
#define KYMO_NCCL_RECORDS_H

#include <stdint.h>

#define NCCL_FILE_MAGIC         "KYMONCL" /* 7 characters and the terminating zero */
#define NCCL_FILE_VERSION_MAJOR 1         /* readers refuse another major version */
#define NCCL_FILE_VERSION_MINOR 2
#define NCCL_HEADER_SIZE        4096u
#define NCCL_NAMES              256u
#define NCCL_NAME_SIZE          32u
#define NCCL_CHUNKS_OFFSET      (NCCL_HEADER_SIZE + NCCL_NAMES * NCCL_NAME_SIZE)
#define NCCL_CHUNK_MAGIC        0x4c43434eu /* "NCCL" */
#define NCCL_CHUNK_SIZE         16384u
#define NCCL_CHUNK_HEADER_SIZE  64u
#define NCCL_RECORD_UNIT        64u

#define NCCL_ID_MAGIC       0xau
#define NCCL_ID_GENERATIONS 0xfffffu
#define NCCL_ID_OFFSET(id)  (((id)&0xfffffffu) * NCCL_RECORD_UNIT)
#define NCCL_ID_CHUNK(id)   ((NCCL_ID_OFFSET(id) - NCCL_CHUNKS_OFFSET) / NCCL_CHUNK_SIZE)

enum nccl_chunk_kind {
	NCCL_CHUNK_FREE,
	NCCL_CHUNK_COMMUNICATORS, /* struct nccl_communicator_record */
	NCCL_CHUNK_OPERATIONS,    /* struct nccl_operation, of one communicator */
	NCCL_CHUNK_EVENTS,        /* struct nccl_event, of one communicator */
	NCCL_CHUNK_TOTALS,        /* struct nccl_total */
	NCCL_CHUNK_KINDS
};

/* What is missing, or was not as it should be; in `losses` of the header. Append only. */
enum nccl_loss {
	NCCL_LOSS_OPERATIONS,      /* operation not recorded: no room was ready */
	NCCL_LOSS_EVENTS,          /* any other event not recorded: no room was ready */
	NCCL_LOSS_COMMUNICATORS,   /* communicator not recorded: no room */
	NCCL_LOSS_RING_OPERATIONS, /* operation overwritten by newer ones */
	NCCL_LOSS_RING_EVENTS,     /* event overwritten by newer ones */
	NCCL_LOSS_NO_PARENT,       /* child of an event that was not recorded (or NULL): left out */
	NCCL_LOSS_LATE, /* child of an operation that was taken for finished: left out of it */
	NCCL_LOSS_FOREIGN_CONTEXT, /* context of another process (PXN) or no context: event left out
				    */
	NCCL_LOSS_FOREIGN_PARENT,  /* parent of another process (PXN): event kept without it */
	NCCL_LOSS_FOREIGN_HANDLE,  /* stop or state of a handle that is not ours */
	NCCL_LOSS_STALE_HANDLE,    /* stop or state of an event that is overwritten */
	NCCL_LOSS_NULL_HANDLE,     /* not used since NULL handles are known to be nothing odd */
	NCCL_LOSS_DOUBLE_STOP,     /* event stopped again: the first stop counts */
	NCCL_LOSS_UNKNOWN_TYPE,    /* event of a type that this plugin does not know */
	NCCL_LOSS_UNKNOWN_STATE,   /* state that the event cannot have */
	NCCL_LOSS_NO_ARGUMENTS,    /* state without its arguments: time kept, values not */
	NCCL_LOSS_NAMES,           /* name not kept: the table is full */
	NCCL_LOSS_RESTARTED,       /* proxy step started again by a poll: same record (no loss) */
	NCCL_LOSS_FINALIZED,       /* event of a communicator that was finalized: kept */
	NCCL_LOSS_DISK_FULL,       /* times the file could not grow */
	NCCL_LOSS_LIMIT,           /* times the size limit was reached */
	NCCL_LOSS_CALL_TRACE,      /* call not written to the call trace */
	NCCL_LOSS_RING_COMMUNICATORS, /* finalized communicator overwritten, behind all of its
					 operations */
	NCCL_LOSS_COUNT = 48
};

/* NCCL's own bits (nccl profiler.h, "ncclProfile*"); event kinds below are their positions. */
enum nccl_kind {
	NCCL_KIND_GROUP,          /* 0x0001 v1 */
	NCCL_KIND_COLLECTIVE,     /* 0x0002 v1: operation */
	NCCL_KIND_P2P,            /* 0x0004 v1: operation */
	NCCL_KIND_PROXY_OP,       /* 0x0008 v1 */
	NCCL_KIND_PROXY_STEP,     /* 0x0010 v1 */
	NCCL_KIND_PROXY_CONTROL,  /* 0x0020 v1 */
	NCCL_KIND_KERNEL_CHANNEL, /* 0x0040 v3 */
	NCCL_KIND_NET_PLUGIN,     /* 0x0080 v3 */
	NCCL_KIND_GROUP_API,      /* 0x0100 v5 */
	NCCL_KIND_COLLECTIVE_API, /* 0x0200 v5 */
	NCCL_KIND_P2P_API,        /* 0x0400 v5 */
	NCCL_KIND_KERNEL_LAUNCH,  /* 0x0800 v5 */
	NCCL_KIND_CE_COLLECTIVE,  /* 0x1000 v6: operation (copy engine) */
	NCCL_KIND_CE_SYNC,        /* 0x2000 v6 */
	NCCL_KIND_CE_BATCH,       /* 0x4000 v6 */
	NCCL_KIND_KERNEL_PHASE,   /* 0x8000 v7 */
	NCCL_KIND_COUNT
};

#define NCCL_KIND_MASK(kind) (1u << (kind))

enum nccl_operation_state {
	NCCL_OPERATION_STARTED = 1, /* NCCL is putting it into a stream; or ENQUEUED, if it has a
				       stop (see nccl_operation_state) */
	NCCL_OPERATION_ENQUEUED,    /* it is there; nothing of it was seen to run yet */
	NCCL_OPERATION_RUNNING,     /* a channel or network transfer of it started and did not stop,
				       or may be followed by others */
	NCCL_OPERATION_DONE,        /* all that started has stopped, and no more will come */
	NCCL_OPERATION_INCOMPLETE   /* the communicator was finalized with it running, or it never
				       stopped being put into a stream */
};

enum nccl_operation_flag {
	NCCL_OPERATION_ENQUEUE_ONLY = 1u << 0, /* nothing tells when it ran: no kernel channel and
						  no network events of it. state stays ENQUEUED */
	NCCL_OPERATION_BATCHED = 1u << 1, /* shares its GPU times with others of one device batch,
					     or send with recv: its own duration is not known */
	NCCL_OPERATION_ALIASED = 1u << 2, /* a channel has a time from behind a later operation's
					     begin: the ring of the device was overrun; or NCCL
					     lost count of its work: times are not its own. Not all
					     of those have it: readers see more than the plugin does
					     when it sets it (docs/reference/nccl.md) */
	NCCL_OPERATION_GRAPH = 1u << 3,   /* its API call was captured into a CUDA graph */
	NCCL_OPERATION_REPLAYED = 1u
				  << 4, /* ... and this is not the first operation of that call */
	NCCL_OPERATION_COUNT_IS_BYTES = 1u << 5, /* count is bytes, whatever data_type says */
	NCCL_OPERATION_TYPE_UNKNOWN = 1u
				      << 6,   /* NCCL said "Unknown": one byte is assumed (uint8) */
	NCCL_OPERATION_NO_SEQUENCE = 1u << 7, /* p2p: too many peers to count */
	NCCL_OPERATION_NETWORK = 1u << 8,     /* proxy operations of it used the network */
	NCCL_OPERATION_LATE = 1u << 9,        /* children came after it was taken for finished */
	NCCL_OPERATION_LOST_CHILD = 1u
				    << 10, /* a child could not be recorded: times may be short */
	NCCL_OPERATION_SEALED = 1u << 11   /* nothing in it changes any more */
};

/* One communicator of one rank in this process. 512 bytes. Its context in NCCL is its id. */
struct nccl_communicator_record {
	uint64_t id;
	uint64_t hash; /* NCCL's commHash/commId, equal on all ranks; v1-v3: of its first operation;
			  0 unknown */
	uint64_t creation;       /* n-th communicator of this process, from 1 */
	uint64_t start_ticks;    /* init */
	uint64_t finalize_ticks; /* 0: not finalized */
	int32_t rank;            /* -1: not known yet (v1-v3, before the first operation) */
	int32_t ranks;           /* 0: not known */
	int32_t nodes;           /* 0: not known */
	uint32_t api;            /* NCCL profiler API version 1..7 */
	uint32_t mask;           /* events asked for */
	uint32_t flags;          /* nccl_communicator_flag */
	uint64_t operations;     /* started so far: the next one's `ordinal` */
	uint64_t finished;       /* of them, DONE or ENQUEUE_ONLY for good */
	uint64_t collectives, p2ps;
	uint64_t last_start_ticks;                   /* of its last operation */
	uint64_t last_event_ticks;                   /* of anything of it */
	uint64_t dropped_operations, dropped_events; /* no room */
	/* Watchdog (NCCL_STALL): */
	uint64_t stall_operation; /* id of the operation that makes no progress; 0 none */
	uint64_t stall_ticks;     /* since when */
	uint64_t stalls;          /* reported so far */
	/* From 1.2 on: its GPU, the one that was current in init. */
	int32_t device;          /* number in the process; of use where device_address is set */
	char device_address[20]; /* PCI bus id, zero-terminated; empty: not known */
	uint64_t reserved[10];
	char name[256]; /* as given, zero-terminated, cut; any bytes */
};

enum nccl_communicator_flag {
	NCCL_COMMUNICATOR_RANKS_INFERRED = 1u << 0, /* from ranks and peers seen, or WORLD_SIZE */
	NCCL_COMMUNICATOR_FINALIZED = 1u << 1
};

/* A collective, a send, a receive or a copy-engine collective. 256 bytes. */
struct nccl_operation {
	uint64_t id;
	uint64_t parent;   /* COLLECTIVE_API or P2P_API event (v5+); 0 unknown */
	uint64_t group;    /* GROUP event; 0 unknown */
	uint64_t start;    /* ticks: NCCL began to enqueue it. The kernel may have begun before. */
	uint64_t stop;     /* ticks: enqueued; 0 not yet. Never "finished" */
	uint64_t launch;   /* ticks: start of the last KERNEL_LAUNCH of the thread and communicator
			      before it; 0 unknown */
	uint64_t last;     /* ticks: last thing that happened to it */
	uint64_t sequence; /* collective: NCCL's, per function and communicator; p2p: our own, from
			      0 per communicator, peer and direction */
	uint64_t ordinal;  /* n-th operation of the communicator in the order of start, from 0 */
	uint64_t count;    /* elements as NCCL says (see flags) */
	uint64_t bytes;    /* count times size of data_type; 0 unknown */
	uint64_t traffic_bytes; /* v1, v2 */
	uint64_t send_buffer, receive_buffer;
	uint64_t user_tag;                           /* v7 */
	uint64_t gpu_start;                          /* first of its channels, GPU clock; 0 none */
	uint64_t gpu_stop;                           /* last of its channels */
	uint64_t channels_started, channels_stopped; /* KERNEL_CHANNEL, bit per channel */
	uint64_t network_start, network_stop; /* ticks: first start and last stop of network proxy
						 operations; 0 none */
	uint32_t communicator;                /* creation of struct nccl_communicator_record */
	uint32_t thread;                      /* tid of start */
	int32_t root;                         /* collectives */
	int32_t peer;                         /* p2p; -1 none */
	uint32_t flags;                       /* nccl_operation_flag */
	uint32_t network_bytes; /* in units of 1024, saturating: what proxy steps said */
	uint16_t proxies_started, proxies_stopped;   /* PROXY_OP of any transport, saturating */
	uint16_t networks_started, networks_stopped; /* of them: seen to use the network */
	uint8_t kind;                                /* nccl_kind: COLLECTIVE, P2P, CE_COLLECTIVE */
	uint8_t state;                               /* nccl_operation_state */
	uint8_t function;                            /* names */
	uint8_t data_type, algorithm, protocol;
	uint8_t channels_expected; /* NCCL's nChannels (nMaxChannels in v1-v3): a hint, 0 often */
	uint8_t warps;
	uint8_t late; /* children after it was sealed, saturating */
	uint8_t api;  /* version */
	uint8_t reserved[6];
	/* From 1.1 on: what threads other than the one that tells most of a communicator's channels
	 * told of them; readers join it (nccl_operation_join). The plugin has, once SEALED. */
	uint64_t channels_started_aside, channels_stopped_aside;
	uint64_t gpu_start_aside, gpu_stop_aside;
	uint64_t spare;
};

enum nccl_event_flag {
	NCCL_EVENT_STOPPED = 1u << 0,
	NCCL_EVENT_FOREIGN_PARENT = 1u << 1, /* of another process */
	NCCL_EVENT_OPEN_AT_FINALIZE = 1u << 2,
	NCCL_EVENT_NETWORK = 1u << 3,  /* PROXY_OP: uses the network */
	NCCL_EVENT_CAPTURED = 1u << 4, /* GROUP_API, COLLECTIVE_API, P2P_API: into a CUDA graph */
	NCCL_EVENT_USED = 1u << 5,     /* COLLECTIVE_API, P2P_API: an operation came of it */
	NCCL_EVENT_SEND = 1u << 6      /* PROXY_OP: isSend; P2P_API unused */
};

/* Everything else. 64 bytes. */
struct nccl_event {
	uint64_t id;
	uint64_t parent;       /* id of an operation or event; 0 none, or not recorded */
	uint64_t start;        /* ticks */
	uint64_t stop;         /* ticks; 0: not stopped (states: last state's time) */
	uint32_t thread;       /* tid of start */
	uint32_t communicator; /* creation */
	uint8_t kind;          /* nccl_kind */
	uint8_t flags;         /* nccl_event_flag */
	uint8_t a, b;          /* below; 0 where not mentioned */
	int32_t c;
	union {
		uint64_t words[2];
		/* KERNEL_CHANNEL: a channel. KERNEL_PHASE: a channel, b phase. 0: not told. */
		struct {
			uint64_t start, stop;
		} gpu;
		/* PROXY_OP: a channel, c peer. `states`: bit per NCCL state seen, 0-7 (v1-v3) and
		 * 19. `kib`: transferred as told by v1-v3 states. */
		struct {
			int32_t steps, chunk_size, pid;
			uint16_t states, kib;
		} proxy_op;
		/* PROXY_STEP: a: bit 0 GPU wait told, 1 peer wait, 2 network wait, 3 flush wait,
		 * 4 receive; c step. Times since start in units of 64 ticks, of the first such
		 * state, saturating. send: gpu = SendGPUWait(8), peer_or_flush = SendPeerWait(20),
		 * wait = SendWait(9); receive: wait = RecvWait(10), peer_or_flush =
		 * RecvFlushWait(11), gpu = RecvGPUWait(12). */
		struct {
			uint32_t bytes, gpu, peer_or_flush, wait;
		} proxy_step;
		/* PROXY_CONTROL: a last state (13-18), c appended proxy operations. */
		/* NET_PLUGIN: a 1 InfiniBand, 2 socket, 0 other; b device; c opcode or operation.
		 */
		struct {
			uint64_t work_id; /* wr_id; socket: descriptor */
			uint32_t queue_pair, bytes;
		} net;
		/* GROUP_API: c depth; times since start in units of 64 ticks. */
		struct {
			uint32_t start_done, end_start;
		} group_api;
		/* COLLECTIVE_API, P2P_API: a function, b data type, c root. */
		struct {
			uint64_t count, stream;
		} api;
		/* KERNEL_LAUNCH */
		struct {
			uint64_t stream, reserved;
		} launch;
		/* CE_SYNC: a complete, c ranks. CE_BATCH: a intra-batch synchronisation, c
		 * operations. */
		struct {
			uint64_t bytes, reserved;
		} ce;
	};
};

/* Sums of operations by communicator, function and size, kept by the plugin's own thread: they
 * count what a ring has overwritten, too. 256 bytes. */
struct nccl_total {
	uint64_t id;
	uint32_t communicator;        /* creation */
	uint8_t function, size_class; /* size_class n: 2^(n-1) <= bytes < 2^n; 0: no bytes */
	uint8_t kind, reserved;
	uint64_t operations, bytes;
	uint64_t timed; /* of them, with a GPU duration of their own (not BATCHED, not ALIASED) */
	uint64_t timed_bytes;
	uint64_t gpu_ns, gpu_ns_minimum, gpu_ns_maximum; /* of the timed ones */
	uint64_t batched, aliased, enqueue_only, incomplete, network;
	uint64_t network_ns; /* host time between first start and last stop of their transfers */
	uint64_t
		buckets[16]; /* timed ones by duration: n: below 2^n * 4 us; the last: all others */
	uint64_t spare;
};

struct nccl_clock {
	uint64_t ticks, monotonic_ns, boottime_ns, realtime_ns;
};

enum nccl_file_state {
	NCCL_FILE_OPEN = 1,   /* running, or ended without a word (SIGKILL, crash, _exit) */
	NCCL_FILE_EXITED = 2, /* exit handlers ran */
	NCCL_FILE_FULL = 3    /* recording ended: no room, and no ring */
};

enum nccl_gpu_clock {
	NCCL_GPU_CLOCK_UNKNOWN,
	NCCL_GPU_CLOCK_EPOCH_NS, /* NVIDIA %globaltimer: ns, close to CLOCK_REALTIME */
	NCCL_GPU_CLOCK_TICKS     /* AMD wall clock: gpu_clock_hz ticks a second */
};

#define NCCL_CLOCKS 32

/* First page of the file. Fields that change are written with atomic stores. */
struct nccl_file_header {
	char magic[8];
	uint16_t version_major, version_minor;
	uint32_t header_size; /* NCCL_HEADER_SIZE */
	uint32_t pid, parent_pid;
	uint64_t process_start; /* field 22 of /proc/self/stat */
	uint32_t file_number;   /* n of the name */
	uint32_t tick_clock;    /* 0: ticks are TSC; 1: ticks are CLOCK_MONOTONIC ns */
	uint64_t tick_hz;       /* 0: by the clocks alone */
	uint32_t state;         /* nccl_file_state */
	uint32_t api;           /* NCCL profiler API version of the first communicator */
	uint32_t nccl_version;  /* ncclGetVersion: 22809 is 2.28.9; 0 unknown */
	uint32_t rccl;          /* 1: RCCL */
	uint32_t mask;          /* events asked for now */
	uint32_t mask_default;  /* 1: by default, 0: by NCCL_EVENTS */
	uint32_t ring;          /* 1: the oldest are overwritten */
	uint32_t nonce;         /* of the ids */
	uint64_t size_limit;    /* bytes */
	uint64_t file_size;     /* bytes in use: chunks end here */
	uint64_t chunks_taken;  /* `sequence` of the last one */
	uint64_t communicators; /* created so far */
	uint64_t unused[32];
	uint64_t recorded[16]; /* by nccl_kind, of those that cannot change any more */
	uint64_t losses[NCCL_LOSS_COUNT];
	/* The plugin's own thread: */
	uint64_t heartbeat_ticks; /* last time it looked: all is known up to here */
	uint64_t heartbeats;
	uint64_t helper_cpu_ns;
	uint64_t stall_limit_ns; /* NCCL_STALL; 0 off */
	uint64_t stalled;        /* operations that make no progress at present */
	uint32_t gpu_clock;      /* nccl_gpu_clock */
	uint32_t clock_count; /* taken so far; the last NCCL_CLOCKS - 1 are kept behind the first */
	uint64_t gpu_clock_hz;                 /* of NCCL_GPU_CLOCK_TICKS */
	struct nccl_clock clocks[NCCL_CLOCKS]; /* [0] at the start; [1 + (n - 1) % 31] the n-th */
	/* Who this process is in a job, as its launcher's environment says; -1 unknown. */
	int32_t world_rank, world_size, local_rank;
	uint32_t reserved;
	char host[64];
	char boot_id[40];
	char program[256]; /* path of the executable, cut */
	char job[64];      /* SLURM_JOB_ID and the like; empty unknown */
	char problem[256]; /* why recording ended or is less than asked for; empty: nothing */
	uint8_t padding[4096 - 2656];
};

struct nccl_chunk_header {
	uint32_t magic;
	uint32_t kind;         /* nccl_chunk_kind */
	uint32_t record_size;  /* bytes */
	uint32_t communicator; /* creation; 0: of several */
	uint64_t sequence;     /* order of taking in this process, from 1 */
	uint32_t generation;   /* of the ids in it */
	uint32_t taken;        /* records begun; may exceed what the chunk holds */
	uint64_t first;        /* OPERATIONS, from 1.1 on: ordinal of the first record */
	/* For the plugin: nothing in it is known to change; but somebody resolved one of its ids.
	 */
	uint32_t is_quiet, changed;
	uint64_t reserved[2];
};

/* Channels that started, and of them stopped, whoever told it; others may be writing. */
static inline uint64_t nccl_operation_started(const struct nccl_operation *operation)
{
	return __atomic_load_n(&operation->channels_started, __ATOMIC_RELAXED) |
	       __atomic_load_n(&operation->channels_started_aside, __ATOMIC_RELAXED);
}

static inline uint64_t nccl_operation_stopped(const struct nccl_operation *operation)
{
	return __atomic_load_n(&operation->channels_stopped, __ATOMIC_ACQUIRE) |
	       __atomic_load_n(&operation->channels_stopped_aside, __ATOMIC_ACQUIRE);
}

/* Puts what was told aside into the members that are for all. */
static inline void nccl_operation_join(struct nccl_operation *operation)
{
	uint64_t start = __atomic_load_n(&operation->gpu_start_aside, __ATOMIC_RELAXED);
	uint64_t stop = __atomic_load_n(&operation->gpu_stop_aside, __ATOMIC_RELAXED);
	uint64_t seen = __atomic_load_n(&operation->gpu_start, __ATOMIC_RELAXED);

	if (!__atomic_load_n(&operation->channels_started_aside, __ATOMIC_RELAXED) &&
	    !__atomic_load_n(&operation->channels_stopped_aside, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&operation->channels_started, nccl_operation_started(operation),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&operation->channels_stopped, nccl_operation_stopped(operation),
			 __ATOMIC_RELAXED);
	if (start && (!seen || start < seen))
		__atomic_store_n(&operation->gpu_start, start, __ATOMIC_RELAXED);
	if (stop > __atomic_load_n(&operation->gpu_stop, __ATOMIC_RELAXED))
		__atomic_store_n(&operation->gpu_stop, stop, __ATOMIC_RELAXED);
}

/* All of it that started has stopped; more may follow until it is SEALED. The rule that the plugin
 * and readers share; others may be writing. */
static inline int nccl_operation_is_quiet(const struct nccl_operation *operation)
{
	uint64_t started = nccl_operation_started(operation);
	uint16_t networks = __atomic_load_n(&operation->networks_started, __ATOMIC_RELAXED);

	if (!__atomic_load_n(&operation->stop, __ATOMIC_RELAXED) ||
	    networks != __atomic_load_n(&operation->networks_stopped, __ATOMIC_RELAXED))
		return 0;
	if (started)
		return started == nccl_operation_stopped(operation);
	return networks > 0;
}

/* The state, for readers: a stop alone does not write it. */
static inline uint8_t nccl_operation_state(const struct nccl_operation *operation)
{
	uint8_t state = __atomic_load_n(&operation->state, __ATOMIC_RELAXED);

	return state == NCCL_OPERATION_STARTED &&
			       __atomic_load_n(&operation->stop, __ATOMIC_RELAXED)
		       ? NCCL_OPERATION_ENQUEUED
		       : state;
}

#ifdef __cplusplus
#define NCCL_RECORDS_ASSERT static_assert
#else
#define NCCL_RECORDS_ASSERT _Static_assert
#endif
NCCL_RECORDS_ASSERT(sizeof(struct nccl_file_header) == NCCL_HEADER_SIZE, "file header is one page");
NCCL_RECORDS_ASSERT(sizeof(struct nccl_chunk_header) == NCCL_CHUNK_HEADER_SIZE, "chunk header");
NCCL_RECORDS_ASSERT(sizeof(struct nccl_communicator_record) == 512, "communicator");
NCCL_RECORDS_ASSERT(sizeof(struct nccl_operation) == 256, "operation");
NCCL_RECORDS_ASSERT(sizeof(struct nccl_event) == 64, "event");
NCCL_RECORDS_ASSERT(sizeof(struct nccl_total) == 256, "total");
NCCL_RECORDS_ASSERT(sizeof(struct nccl_clock) == 32, "clock");

#endif
