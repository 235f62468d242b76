/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Domains and the kinds by which tools know them.
 */
#ifndef KYMO_LIBKYMO_SDK_DOMAINS_H
#define KYMO_LIBKYMO_SDK_DOMAINS_H

#include "libkymo-sdk/emit.h"

/* Kinds of runtimes that upstream has no kinds for: callback and buffer tracing alike. */
#define SDK_KIND_FIRST_OWN        0x1000
#define SDK_KIND_CUDA_RUNTIME_API 0x1000
#define SDK_KIND_CUDA_DRIVER_API  0x1001
#define SDK_KIND_OPENCL_API       0x1002
#define SDK_KIND_OWN_COUNT        3

struct sdk_domain_kinds {
	int callback, buffer, buffer_ext, request; /* 0: there is none */
};

extern const struct sdk_domain_kinds sdk_domains[SDK_DOMAIN_COUNT];

/* SDK_DOMAIN_NONE: no such kind. */
enum sdk_domain sdk_domain_of_callback(int kind);
enum sdk_domain sdk_domain_of_buffer(int kind, bool *is_ext);
enum sdk_domain sdk_domain_of_request(int kind);

#endif
