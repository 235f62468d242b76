/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Page migration before 1.0: one kind, where there are eight (KFD_*) now. Programs that know it
 * compile; it is not reported.
 */
#ifndef ROCPROFILER_SDK_DEPRECATED_PAGE_MIGRATION_H
#define ROCPROFILER_SDK_DEPRECATED_PAGE_MIGRATION_H

#include <rocprofiler-sdk/buffer_tracing.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

#if ROCPROFILER_SDK_BETA_COMPAT > 0

ROCPROFILER_EXTERN_C_INIT

#define ROCPROFILER_BUFFER_TRACING_PAGE_MIGRATION ROCPROFILER_BUFFER_TRACING_KFD_PAGE_MIGRATE

typedef enum rocprofiler_page_migration_operation_t {
	ROCPROFILER_PAGE_MIGRATION_NONE = 0,
	ROCPROFILER_PAGE_MIGRATION_PAGE_MIGRATE = 1,
	ROCPROFILER_PAGE_MIGRATION_PAGE_FAULT = 2,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND = 3,
	ROCPROFILER_PAGE_MIGRATION_UNMAP_FROM_GPU = 4,
	ROCPROFILER_PAGE_MIGRATION_LAST = 5
} rocprofiler_page_migration_operation_t;

typedef enum rocprofiler_page_migration_trigger_t {
	ROCPROFILER_PAGE_MIGRATION_TRIGGER_NONE = -1,
	ROCPROFILER_PAGE_MIGRATION_TRIGGER_PREFETCH = 0,
	ROCPROFILER_PAGE_MIGRATION_TRIGGER_PAGEFAULT_GPU = 1,
	ROCPROFILER_PAGE_MIGRATION_TRIGGER_PAGEFAULT_CPU = 2,
	ROCPROFILER_PAGE_MIGRATION_TRIGGER_TTM_EVICTION = 3,
	ROCPROFILER_PAGE_MIGRATION_TRIGGER_LAST = 4
} rocprofiler_page_migration_trigger_t;

typedef enum rocprofiler_page_migration_queue_suspend_trigger_t {
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_NONE = -1,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_SVM = 0,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_USERPTR = 1,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_TTM = 2,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_SUSPEND = 3,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_CRIU_CHECKPOINT = 4,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_CRIU_RESTORE = 5,
	ROCPROFILER_PAGE_MIGRATION_QUEUE_SUSPEND_TRIGGER_LAST = 6
} rocprofiler_page_migration_queue_suspend_trigger_t;

typedef enum rocprofiler_page_migration_unmap_from_gpu_trigger_t {
	ROCPROFILER_PAGE_MIGRATION_UNMAP_FROM_GPU_TRIGGER_NONE = -1,
	ROCPROFILER_PAGE_MIGRATION_UNMAP_FROM_GPU_TRIGGER_MMU_NOTIFY = 0,
	ROCPROFILER_PAGE_MIGRATION_UNMAP_FROM_GPU_TRIGGER_MMU_NOTIFY_MIGRATE = 1,
	ROCPROFILER_PAGE_MIGRATION_UNMAP_FROM_GPU_TRIGGER_UNMAP_FROM_CPU = 2,
	ROCPROFILER_PAGE_MIGRATION_UNMAP_FROM_GPU_TRIGGER_LAST = 3
} rocprofiler_page_migration_unmap_from_gpu_trigger_t;

typedef struct rocprofiler_buffer_tracing_page_migration_page_fault_record_t {
	__extension__ uint8_t read_fault : 1;
	__extension__ uint8_t migrated : 1;
	uint32_t node_id;
	uint64_t address;
} rocprofiler_buffer_tracing_page_migration_page_fault_record_t;

typedef struct rocprofiler_buffer_tracing_page_migration_page_migrate_record_t {
	uint64_t start_addr;
	uint64_t end_addr;
	uint32_t from_node;
	uint32_t to_node;
	uint32_t prefetch_node;
	uint32_t preferred_node;
	rocprofiler_page_migration_trigger_t trigger;
} rocprofiler_buffer_tracing_page_migration_page_migrate_record_t;

typedef struct rocprofiler_buffer_tracing_page_migration_queue_suspend_record_t {
	__extension__ uint8_t rescheduled : 1;
	uint32_t node_id;
	rocprofiler_page_migration_queue_suspend_trigger_t trigger;
} rocprofiler_buffer_tracing_page_migration_queue_suspend_record_t;

typedef struct rocprofiler_buffer_tracing_page_migration_unmap_from_gpu_record_t {
	uint32_t node_id;
	uint64_t start_addr;
	uint64_t end_addr;
	rocprofiler_page_migration_unmap_from_gpu_trigger_t trigger;
} rocprofiler_buffer_tracing_page_migration_unmap_from_gpu_record_t;

typedef struct rocprofiler_buffer_tracing_page_migration_record_t {
	uint64_t size;
	rocprofiler_buffer_tracing_kind_t kind;
	rocprofiler_tracing_operation_t operation;
	rocprofiler_timestamp_t start_timestamp;
	rocprofiler_timestamp_t end_timestamp;
	uint32_t pid;
	__extension__ union {
		rocprofiler_buffer_tracing_page_migration_page_fault_record_t page_fault;
		rocprofiler_buffer_tracing_page_migration_page_migrate_record_t page_migrate;
		rocprofiler_buffer_tracing_page_migration_queue_suspend_record_t queue_suspend;
		rocprofiler_buffer_tracing_page_migration_unmap_from_gpu_record_t unmap_from_gpu;
		__extension__ struct {
			uint64_t reserved[12];
		};
	};
} rocprofiler_buffer_tracing_page_migration_record_t;

ROCPROFILER_EXTERN_C_FINI

#endif

#endif
