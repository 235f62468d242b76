/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Devices and what runs on them, whoever made them. Two small tables of functions meet here:
 *
 *   device_sink     what a backend tells: agents, calls of a runtime, kernels, copies, allocations,
 *                   programs and their kernels. The tool library fills it in.
 *   device_backend  what the tool library asks of a backend: begin, follow what is wanted, hand
 * over what is finished, end. host/, opencl/, cuda/, hsa/ each are one.
 *
 * A backend knows its runtime and nothing of contexts, buffers or tools; the tool library knows
 * nothing of runtimes. Times are ns of CLOCK_BOOTTIME. Handles come from the sink, are opaque, and
 * DEVICE_NONE says that nobody wants to hear more of it.
 *
 * Threads: backends call the sink from any thread of the program and from threads of the vendor's
 * library. No backend holds a lock of its own while it does.
 */
#ifndef KYMO_DEVICE_DEVICE_H
#define KYMO_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_NONE 0u

typedef uint64_t device_handle; /* an agent, a call, a kernel in flight, a program, ... */

/* What can be asked for; device_sink.wants() answers by one load. */
enum device_service {
	DEVICE_SERVICE_CALLS_OPENCL, /* calls of a runtime: operation is the function's number */
	DEVICE_SERVICE_CALLS_CUDA_RUNTIME,
	DEVICE_SERVICE_CALLS_CUDA_DRIVER,
	DEVICE_SERVICE_KERNELS,
	DEVICE_SERVICE_COPIES,
	DEVICE_SERVICE_ALLOCATIONS,
	DEVICE_SERVICE_PROGRAMS,
	DEVICE_SERVICE_MARKERS,
	DEVICE_SERVICE_COUNT
};

enum device_runtime {
	DEVICE_RUNTIME_HOST,
	DEVICE_RUNTIME_OPENCL,
	DEVICE_RUNTIME_CUDA,
	DEVICE_RUNTIME_HSA
};

/* What a device is. Strings are copied; NULL is taken for "". What is not known is 0. */
struct device_agent {
	enum device_runtime runtime;
	bool is_gpu;
	const char *name;         /* architecture: "sm_90", "opencl_<vendor>", the CPU's model */
	const char *vendor_name;  /* "NVIDIA", "CPU", ... */
	const char *product_name; /* as sold */
	const char *model_name;
	uint8_t uuid[16];
	uint32_t vendor_id, device_id;
	uint32_t pci_domain, pci_location; /* location: bus << 8 | device << 3 | function */
	uint32_t cores;                    /* logical CPUs of a CPU */
	uint32_t compute_units, simds_per_unit;
	uint32_t wave_size; /* threads that go together */
	uint32_t waves_per_unit;
	uint32_t local_memory_kib; /* shared by a group of threads */
	uint32_t engines;
	uint32_t clock_mhz, core_clock_mhz; /* of the device; of a CPU's cores */
	uint32_t group_size;                /* threads in a group, at most */
	uint32_t group_dimensions[3], grid_dimensions[3];
	uint64_t memory_bytes;
	uint32_t runtime_ordinal; /* the runtime's own number of it */
};

/* One call of a runtime's function, as it is made. */
struct device_call {
	enum device_service service; /* one of CALLS_* */
	int32_t operation;           /* the function's number in its table (device_operations) */
	const void *arguments;       /* the runtime's own struct of them (described by the table) */
};

enum device_copy_direction {
	DEVICE_COPY_OTHER,
	DEVICE_COPY_HOST_TO_HOST,
	DEVICE_COPY_HOST_TO_DEVICE,
	DEVICE_COPY_DEVICE_TO_HOST,
	DEVICE_COPY_DEVICE_TO_DEVICE,
	DEVICE_COPY_FILL /* of memory with one value: from and to are the same */
};

struct device_kernel {
	device_handle agent;
	device_handle symbol; /* from kernel_symbol() */
	uint64_t queue;       /* of the runtime, unique in the process; 0: unknown */
	uint32_t group[3];    /* threads of a group */
	uint32_t grid[3];     /* threads in all, not groups */
	uint32_t private_bytes, group_bytes;
};

struct device_copy {
	enum device_copy_direction direction;
	device_handle from, to; /* agents; the host's is DEVICE_NONE where it is not known */
	uint64_t queue;
	uint64_t bytes;
	uint64_t from_address, to_address;
};

enum device_allocation_operation {
	DEVICE_ALLOCATE,
	DEVICE_ALLOCATE_VIRTUAL,
	DEVICE_FREE,
	DEVICE_FREE_VIRTUAL
};

struct device_allocation {
	enum device_allocation_operation operation;
	device_handle agent;
	uint64_t address, bytes;
	uint64_t start, end;
};

struct device_program {
	device_handle agent;
	const char *uri;
	const void *image; /* in memory, may be NULL */
	uint64_t image_size;
};

struct device_symbol {
	device_handle program;
	const char *name;
	uint64_t object; /* the runtime's own handle */
	uint32_t argument_bytes, argument_alignment, group_bytes, private_bytes, registers;
};

/* Markers of the program that come by another way than the library's own functions (NVTX). */
enum device_marker {
	DEVICE_MARKER_MARK,
	DEVICE_MARKER_PUSH,
	DEVICE_MARKER_POP,
	DEVICE_MARKER_START,
	DEVICE_MARKER_STOP
};

struct device_counting;
struct device_counting_sink;

struct device_sink {
	uint64_t (*now)(void);
	/* Does anybody want it? operation -1: any of the service's. One load and a test. */
	bool (*wants)(enum device_service service, int32_t operation);
	/* The same device told twice (name, uuid, PCI place) is the same agent. */
	device_handle (*agent)(const struct device_agent *agent);
	/* The agent of the host itself. */
	device_handle (*host_agent)(void);
	/* A runtime is there: version as major * 10000 + minor * 100 + patch. */
	void (*runtime_ready)(enum device_runtime runtime, uint64_t version);
	/* The same, with tables of its functions, which tools may look at and change, and which are
	 * told from then on. */
	void (*runtime_tables)(enum device_runtime runtime, uint64_t version, void **tables,
			       uint64_t count);

	/* Calls nest per thread: left in the reverse order of their entries. call_enter() gives
	 * DEVICE_NONE where nobody wants the call; then call_exit() is not called. */
	device_handle (*call_enter)(const struct device_call *call);
	void (*call_exit)(device_handle handle, const struct device_call *call, const void *result);

	/* A kernel's way: kernel_enqueue() before it is given to the runtime, on the enqueueing
	 * thread; kernel_submitted() behind it (failed: it is not going to run, and the handle is
	 * gone); kernel_complete() once, from any thread, possibly before kernel_submitted(). */
	device_handle (*kernel_enqueue)(const struct device_kernel *kernel);
	void (*kernel_submitted)(device_handle kernel, bool failed);
	/* `ran` replaces what was told at the enqueueing, where the runtime knows it only now; else
	 * NULL. start and end 0: it was not finished when the device was last heard of. */
	void (*kernel_complete)(device_handle kernel, const struct device_kernel *ran,
				uint64_t start, uint64_t end);
	/* One more kernel of a launch that has several (a graph): shares its correlation. */
	device_handle (*kernel_again)(device_handle kernel);

	device_handle (*copy_begin)(const struct device_copy *copy);
	void (*copy_complete)(device_handle copy, const struct device_copy *ran, uint64_t start,
			      uint64_t end);
	void (*copy_failed)(device_handle copy);

	/* What a runtime tells only afterwards: the correlation that copies, kernels and fills of
	 * this call belong to, kept until correlation_close(). DEVICE_NONE: nobody wants any of it.
	 */
	device_handle (*correlation_open)(void);
	void (*correlation_close)(device_handle correlation);
	/* Records of finished work by that correlation, which may be DEVICE_NONE (unknown). */
	void (*kernel_record)(device_handle correlation, const struct device_kernel *kernel,
			      uint64_t start, uint64_t end);
	void (*copy_record)(device_handle correlation, const struct device_copy *copy,
			    uint64_t start, uint64_t end);

	void (*allocation)(const struct device_allocation *allocation);

	device_handle (*program_load)(const struct device_program *program);
	device_handle (*kernel_symbol)(const struct device_symbol *symbol);
	void (*program_unload)(device_handle program);

	/* Returns the id of a started range, else 0; `range` is what to stop. */
	uint64_t (*marker)(enum device_marker marker, const char *message, uint64_t range);

	/* The backend makes a thread of its own: told before and after, so that tools can look
	 * away. */
	void (*thread_starting)(void);
	void (*thread_started)(void);
	/* The calling thread is not the program's: nothing it does is traced. */
	void (*own_thread)(void);
	/* A runtime has registered its own end by now: that of the tools is to come before it. */
	void (*end_before_runtime)(void);
	/* One line for the user, and where it came from. */
	void (*say)(enum device_runtime runtime, const char *text);
	const struct device_counting_sink *counting; /* see counting.h; NULL: nobody counts */
};

/* What a backend lost or could not see; cumulative. */
struct device_losses {
	uint64_t dropped;    /* records that the runtime dropped */
	uint64_t unmatched;  /* finished work whose launch was not seen */
	uint64_t incomplete; /* still running at the end */
	uint64_t conflicts;  /* somebody else holds what tracing needs */
};

struct device_backend {
	const char *name;
	enum device_runtime runtime;
	/* Tells the devices that can be seen without starting a runtime. Called once, on the thread
	 * that asks for agents first; never from a runtime's own initialization. */
	void (*discover)(const struct device_sink *sink);
	/* What anybody wants has changed (a context was started or stopped): turn on or off what
	 * costs. Any thread of the program. */
	void (*wanted_changed)(const struct device_sink *sink);
	/* Hand over everything that is finished. wait: also what is still running, `wait_ns` at
	 * most. */
	void (*flush)(bool wait, uint64_t wait_ns);
	/* The process ends, or nobody is left: like flush, then nothing more is told. */
	void (*finish)(void);
	/* In a child of fork: the runtime is not usable there. */
	void (*forked)(void);
	void (*losses)(struct device_losses *losses);
	const struct device_counting *counting; /* see counting.h; NULL: it cannot count */
};

extern const struct device_backend device_backend_host;
extern const struct device_backend device_backend_opencl;
extern const struct device_backend device_backend_cuda;
extern const struct device_backend device_backend_hsa;

/* The sink is set once, before anything is told; until then backends are silent. A runtime that is
 * found early calls device_runtime_found(), which asks the tool library to look for its tools. */
void device_start(const struct device_sink *sink, void (*runtime_found)(enum device_runtime));
const struct device_sink *device_sink(void); /* NULL: not started */
void device_runtime_found(enum device_runtime runtime);
void device_discover(void);
void device_wanted_changed(void);
void device_flush(bool wait, uint64_t wait_ns);
void device_finish(void);
/* exit() has begun: runtimes may be gone, so nothing is turned off any more. */
void device_process_ends(void);
bool device_is_ending(void);
void device_forked(void);
void device_losses(struct device_losses *losses); /* of all backends together */
/* HSA's tables are there (struct HsaApiTable), by whatever way: its devices are told. */
void device_hsa_found(const void *root);
/* A range of the calling thread's, for counting it as a kernel of the host: host/regions.c. */
void device_region_push(const char *name);
void device_region_pop(void);
size_t device_backends(const struct device_backend *const **all);

/* Functions of a runtime, by their number: names for queries, and descriptions of arguments. */
struct device_operations {
	enum device_service service;
	uint32_t count;
	const char *(*name)(int32_t operation); /* NULL: no such operation */
	/* Calls `each` for every argument, in order: type, name, address of its value. Non-zero
	 * ends. */
	int (*arguments)(const struct device_call *call,
			 int (*each)(void *context, uint32_t number, const char *type,
				     const char *name, const void *value),
			 void *context);
};
const struct device_operations *device_operations(enum device_service service);

#endif
