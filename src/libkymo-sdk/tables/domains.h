/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Domains and the kinds by which tools know them.
 */
#ifndef KYMO_LIBKYMO_SDK_TABLES_DOMAINS_H
#define KYMO_LIBKYMO_SDK_TABLES_DOMAINS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rocprofiler-sdk/rocprofiler.h>

enum sdk_domain {
	SDK_DOMAIN_NONE,
	SDK_DOMAIN_HSA_CORE,
	SDK_DOMAIN_HSA_AMD_EXT,
	SDK_DOMAIN_HSA_IMAGE_EXT,
	SDK_DOMAIN_HSA_FINALIZE_EXT,
	SDK_DOMAIN_HIP_RUNTIME,
	SDK_DOMAIN_HIP_COMPILER,
	SDK_DOMAIN_MARKER_CORE,
	SDK_DOMAIN_MARKER_CONTROL,
	SDK_DOMAIN_MARKER_NAME,
	SDK_DOMAIN_MARKER_CORE_RANGE,
	SDK_DOMAIN_RCCL,
	SDK_DOMAIN_OMPT,
	SDK_DOMAIN_ROCDECODE,
	SDK_DOMAIN_ROCJPEG,
	SDK_DOMAIN_CODE_OBJECT,
	SDK_DOMAIN_SCRATCH,
	SDK_DOMAIN_DISPATCH,
	SDK_DOMAIN_COPY,
	SDK_DOMAIN_ALLOCATION,
	SDK_DOMAIN_RUNTIME,
	SDK_DOMAIN_HIP_STREAM,
	SDK_DOMAIN_RETIREMENT,
	SDK_DOMAIN_KFD, /* seven kinds that are accepted and never told */
	/* Runtimes that upstream does not know; their kinds are past all of upstream's. */
	SDK_DOMAIN_CUDA_RUNTIME,
	SDK_DOMAIN_CUDA_DRIVER,
	SDK_DOMAIN_OPENCL,
	SDK_DOMAIN_COUNT
};

/* Operations of a domain lie below this. */
#define SDK_OPERATIONS_MAX 1024

/* Kinds of runtimes that upstream has no kinds for: callback and buffer tracing alike. */
#define SDK_KIND_KYMO_FIRST       0x1000
#define SDK_KIND_CUDA_RUNTIME_API 0x1000
#define SDK_KIND_CUDA_DRIVER_API  0x1001
#define SDK_KIND_OPENCL_API       0x1002
#define SDK_KIND_KYMO_COUNT       3

struct sdk_domain_kinds_entry {
	int callback_kind, buffer_kind, buffer_ext_kind,
		external_id_request_kind; /* 0: there is none */
};

extern const struct sdk_domain_kinds_entry sdk_kinds_by_domain[SDK_DOMAIN_COUNT];

/* SDK_DOMAIN_NONE: no such kind. */
enum sdk_domain sdk_callback_kind_to_domain(int kind);
enum sdk_domain sdk_buffer_kind_to_domain(int kind, bool *is_ext);
enum sdk_domain sdk_request_kind_to_domain(int kind);

#endif
