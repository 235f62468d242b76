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
 * DEVICE_HANDLE_NONE says that nobody wants to hear more of it.
 *
 * Threads: backends call the sink from any thread of the program and from threads of the vendor's
 * library. No backend holds a lock of its own while it does.
 */
#ifndef KYMO_DEVICE_DEVICE_H
#define KYMO_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICE_HANDLE_NONE 0u

typedef uint64_t device_handle; /* an agent, a call, a kernel in flight, a program, ... */

/* What can be asked for; device_sink.wants() answers by one load. */
enum device_service_kind {
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

enum device_runtime_kind {
	DEVICE_RUNTIME_HOST,
	DEVICE_RUNTIME_OPENCL,
	DEVICE_RUNTIME_CUDA,
	DEVICE_RUNTIME_HSA
};

/* What a device is. Strings are copied; NULL is taken for "". What is not known is 0. */
struct device_agent {
	enum device_runtime_kind runtime;
	bool is_gpu;
	const char *name;         /* architecture: "sm_90", "opencl_<vendor>", the CPU's model */
	const char *vendor_name;  /* "NVIDIA", "CPU", ... */
	const char *product_name; /* as sold */
	const char *model_name;
	uint8_t uuid[16];
	uint32_t vendor_id, device_id;
	uint32_t pci_domain, pci_location; /* location: bus << 8 | device << 3 | function */
	uint32_t logical_cpu_count;        /* logical CPUs of a CPU */
	uint32_t compute_units, simds_per_unit;
	uint32_t wave_size; /* threads that go together */
	uint32_t waves_per_unit;
	uint32_t local_memory_kib; /* shared by a group of threads */
	uint32_t shader_engines;
	uint32_t clock_mhz, cpu_core_clock_mhz; /* of the device; of a CPU's cores */
	uint32_t group_size;                    /* threads in a group, at most */
	uint32_t group_dimensions_max[3], grid_dimensions_max[3];
	uint64_t memory_bytes;
	uint32_t runtime_ordinal; /* the runtime's own number of it */
};

/* One call of a runtime's function, as it is made. */
struct device_api_call_info {
	enum device_service_kind service; /* one of CALLS_* */
	int32_t operation;     /* the function's number in its table (device_call_catalog) */
	const void *arguments; /* the runtime's own struct of them (described by the table) */
};

enum device_copy_direction {
	DEVICE_COPY_OTHER,
	DEVICE_COPY_HOST_TO_HOST,
	DEVICE_COPY_HOST_TO_DEVICE,
	DEVICE_COPY_DEVICE_TO_HOST,
	DEVICE_COPY_DEVICE_TO_DEVICE,
	DEVICE_COPY_FILL /* of memory with one value: from and to are the same */
};

struct device_kernel_launch {
	device_handle agent;
	device_handle symbol;      /* from kernel_symbol() */
	uint64_t queue;            /* of the runtime, unique in the process; 0: unknown */
	uint32_t group_threads[3]; /* threads of a group */
	uint32_t grid_threads[3];  /* threads in all, not groups */
	uint32_t private_bytes, group_bytes;
};

struct device_copy {
	enum device_copy_direction direction;
	device_handle from, to; /* agents; the host's is DEVICE_HANDLE_NONE where it is not known */
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
enum device_marker_kind {
	DEVICE_MARKER_MARK,
	DEVICE_MARKER_PUSH,
	DEVICE_MARKER_POP,
	DEVICE_MARKER_START,
	DEVICE_MARKER_STOP
};

struct device_counting_backend;
struct device_counting_sink;

struct device_sink {
	uint64_t (*now)(void);
	/* Does anybody want it? operation -1: any of the service's. One load and a test. */
	bool (*is_wanted)(enum device_service_kind service, int32_t operation);
	/* The same device told twice (name, uuid, PCI place) is the same agent. */
	device_handle (*agent)(const struct device_agent *agent);
	/* The agent of the host itself. */
	device_handle (*get_host_agent)(void);
	/* A runtime is there: version as major * 10000 + minor * 100 + patch. */
	void (*runtime_ready)(enum device_runtime_kind runtime, uint64_t version);
	/* The same, with tables of its functions, which tools may look at and change, and which are
	 * told from then on. */
	void (*runtime_tables_ready)(enum device_runtime_kind runtime, uint64_t version,
				     void **tables, uint64_t count);

	/* Calls nest per thread: left in the reverse order of their entries. call_enter() gives
	 * DEVICE_HANDLE_NONE where nobody wants the call; then call_exit() is not called. */
	device_handle (*call_enter)(const struct device_api_call_info *call);
	void (*call_exit)(device_handle handle, const struct device_api_call_info *call,
			  const void *result);

	/* A kernel's way: kernel_enqueue() before it is given to the runtime, on the enqueueing
	 * thread; kernel_submitted() behind it (failed: it is not going to run, and the handle is
	 * gone); kernel_complete() once, from any thread, possibly before kernel_submitted(). */
	device_handle (*kernel_enqueue)(const struct device_kernel_launch *kernel);
	void (*kernel_submitted)(device_handle kernel, bool failed);
	/* `ran` replaces what was told at the enqueueing, where the runtime knows it only now; else
	 * NULL. start and end 0: it was not finished when the device was last heard of. */
	void (*kernel_complete)(device_handle kernel, const struct device_kernel_launch *ran,
				uint64_t start, uint64_t end);
	/* One more kernel of a launch that has several (a graph): shares its correlation. */
	device_handle (*kernel_added_to_launch)(device_handle kernel);

	device_handle (*copy_begin)(const struct device_copy *copy);
	void (*copy_complete)(device_handle copy, const struct device_copy *ran, uint64_t start,
			      uint64_t end);
	void (*copy_failed)(device_handle copy);

	/* What a runtime tells only afterwards: the correlation that copies, kernels and fills of
	 * this call belong to, kept until correlation_close(). DEVICE_HANDLE_NONE: nobody wants any
	 * of it.
	 */
	device_handle (*correlation_open)(void);
	void (*correlation_close)(device_handle correlation);
	/* Records of finished work by that correlation, which may be DEVICE_HANDLE_NONE (unknown).
	 */
	void (*kernel_record)(device_handle correlation, const struct device_kernel_launch *kernel,
			      uint64_t start, uint64_t end);
	void (*copy_record)(device_handle correlation, const struct device_copy *copy,
			    uint64_t start, uint64_t end);

	void (*allocation_event)(const struct device_allocation *allocation);

	device_handle (*program_load)(const struct device_program *program);
	device_handle (*kernel_symbol)(const struct device_symbol *symbol);
	void (*program_unload)(device_handle program);

	/* Returns the id of a started range, else 0; `range` is what to stop. */
	uint64_t (*marker_event)(enum device_marker_kind marker, const char *message,
				 uint64_t range);

	/* The backend makes a thread of its own: told before and after, so that tools can look
	 * away. */
	void (*tool_thread_starting)(void);
	void (*tool_thread_started)(void);
	/* The calling thread is not the program's: nothing it does is traced. */
	void (*exclude_calling_thread)(void);
	/* A runtime has registered its own end by now: that of the tools is to come before it. */
	void (*end_tools_before_runtime)(void);
	/* One line for the user, and where it came from. */
	void (*say)(enum device_runtime_kind runtime, const char *text);
	const struct device_counting_sink *counting; /* see counting.h; NULL: nobody counts */
};

/* What a backend lost or could not see; cumulative. */
struct device_record_loss_counts {
	uint64_t dropped;                /* records that the runtime dropped */
	uint64_t unmatched_work_count;   /* finished work whose launch was not seen */
	uint64_t incomplete_work_count;  /* still running at the end */
	uint64_t tracing_conflict_count; /* somebody else holds what tracing needs */
};

struct device_backend {
	const char *name;
	enum device_runtime_kind runtime;
	/* Tells the devices that can be seen without starting a runtime. Called once, on the thread
	 * that asks for agents first; never from a runtime's own initialization. */
	void (*discover_devices)(const struct device_sink *sink);
	/* What anybody wants has changed (a context was started or stopped): turn on or off what
	 * costs. Any thread of the program. */
	void (*wanted_services_changed)(const struct device_sink *sink);
	/* Hand over everything that is finished. wait: also what is still running, `wait_ns` at
	 * most. */
	void (*flush)(bool wait, uint64_t wait_ns);
	/* The process ends, or nobody is left: like flush, then nothing more is reported. */
	void (*finish)(void);
	/* In a child of fork: the runtime is not usable there. */
	void (*forked)(void);
	void (*losses)(struct device_record_loss_counts *losses);
	const struct device_counting_backend *counting; /* see counting.h; NULL: it cannot count */
};

extern const struct device_backend device_backend_host;
extern const struct device_backend device_backend_opencl;
extern const struct device_backend device_backend_cuda;
extern const struct device_backend device_backend_hsa;

/* The sink is set once, before anything is reported; until then backends are silent. A runtime that
 * is found early calls device_report_runtime_found(), which asks the tool library to look for its
 * tools.
 */
void device_set_sink(const struct device_sink *sink,
		     void (*runtime_found)(enum device_runtime_kind));
const struct device_sink *device_get_sink(void); /* NULL: not started */
void device_report_runtime_found(enum device_runtime_kind runtime);
/* exit() has begun: runtimes may be gone, so nothing is turned off any more. */
void device_set_process_ending(void);
bool device_process_is_ending(void);
/* HSA's tables are there (struct HsaApiTable), by whatever way: its devices are reported. */
void device_report_hsa_agents(const void *root);
/* OpenCL's devices in a program that has not used OpenCL yet, found by another process. Once, and
 * it may take as long as OpenCL's drivers do to start. */
void device_find_opencl_devices_of_unused_runtime(void);
/* A range of the calling thread's, for counting it as a kernel of the host: host/regions.c. */
void device_host_region_push(const char *name);
void device_host_region_pop(void);

/* Functions of a runtime, by their number: names for queries, and descriptions of arguments. */
struct device_call_catalog {
	enum device_service_kind service;
	uint32_t count;
	const char *(*name)(int32_t operation); /* NULL: no such operation */
	/* Calls `each` for every argument, in order: type, name, address of its value. Non-zero
	 * ends. */
	int (*arguments)(const struct device_api_call_info *call,
			 int (*each)(void *context, uint32_t number, const char *type,
				     const char *name, const void *value),
			 void *context);
};

#endif
