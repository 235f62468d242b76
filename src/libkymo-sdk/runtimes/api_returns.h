/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of AMD's runtimes that do not return their runtime's status. See api_wrappers.h.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_API_RETURNS_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_API_RETURNS_H

/* clang-format off */
#define API_RETURNS_hsa_queue_load_read_index_scacquire ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_load_read_index_relaxed ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_load_write_index_scacquire ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_load_write_index_relaxed ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_cas_write_index_scacq_screl ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_cas_write_index_scacquire ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_cas_write_index_relaxed ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_cas_write_index_screlease ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_add_write_index_scacq_screl ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_add_write_index_scacquire ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_add_write_index_relaxed ~, VALUE, uint64_t
#define API_RETURNS_hsa_queue_add_write_index_screlease ~, VALUE, uint64_t
#define API_RETURNS_hsa_signal_load_relaxed ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_load_scacquire ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_wait_relaxed ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_wait_scacquire ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_exchange_relaxed ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_exchange_scacquire ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_exchange_screlease ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_exchange_scacq_screl ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_cas_relaxed ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_cas_scacquire ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_cas_screlease ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_signal_cas_scacq_screl ~, VALUE, hsa_signal_value_t
#define API_RETURNS_hsa_amd_signal_wait_any ~, VALUE, uint32_t
#define API_RETURNS_hsa_amd_signal_wait_all ~, VALUE, uint32_t
#define API_RETURNS_hsa_queue_store_write_index_relaxed ~, VOID, void
#define API_RETURNS_hsa_queue_store_write_index_screlease ~, VOID, void
#define API_RETURNS_hsa_queue_store_read_index_relaxed ~, VOID, void
#define API_RETURNS_hsa_queue_store_read_index_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_store_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_store_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_and_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_and_scacquire ~, VOID, void
#define API_RETURNS_hsa_signal_and_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_and_scacq_screl ~, VOID, void
#define API_RETURNS_hsa_signal_or_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_or_scacquire ~, VOID, void
#define API_RETURNS_hsa_signal_or_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_or_scacq_screl ~, VOID, void
#define API_RETURNS_hsa_signal_xor_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_xor_scacquire ~, VOID, void
#define API_RETURNS_hsa_signal_xor_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_xor_scacq_screl ~, VOID, void
#define API_RETURNS_hsa_signal_add_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_add_scacquire ~, VOID, void
#define API_RETURNS_hsa_signal_add_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_add_scacq_screl ~, VOID, void
#define API_RETURNS_hsa_signal_subtract_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_subtract_scacquire ~, VOID, void
#define API_RETURNS_hsa_signal_subtract_screlease ~, VOID, void
#define API_RETURNS_hsa_signal_subtract_scacq_screl ~, VOID, void
#define API_RETURNS_hsa_signal_silent_store_relaxed ~, VOID, void
#define API_RETURNS_hsa_signal_silent_store_screlease ~, VOID, void

#define API_RETURNS_hipApiName ~, VALUE, const char *
#define API_RETURNS_hipGetErrorName ~, VALUE, const char *
#define API_RETURNS_hipGetErrorString ~, VALUE, const char *
#define API_RETURNS_hipKernelNameRef ~, VALUE, const char *
#define API_RETURNS_hipKernelNameRefByPtr ~, VALUE, const char *
#define API_RETURNS_hipGetStreamDeviceId ~, VALUE, int
#define API_RETURNS_hipCreateChannelDesc ~, VALUE, hipChannelFormatDesc
#define API_RETURNS___hipRegisterFatBinary ~, VALUE, void **
#define API_RETURNS___hipRegisterFunction ~, VOID, void
#define API_RETURNS___hipRegisterManagedVar ~, VOID, void
#define API_RETURNS___hipRegisterSurface ~, VOID, void
#define API_RETURNS___hipRegisterTexture ~, VOID, void
#define API_RETURNS___hipRegisterVar ~, VOID, void
#define API_RETURNS___hipUnregisterFatBinary ~, VOID, void

#define API_RETURNS_ncclGetErrorString ~, VALUE, const char *
#define API_RETURNS_ncclGetLastError ~, VALUE, const char *
#define API_RETURNS_rocDecGetErrorName ~, VALUE, const char *
#define API_RETURNS_rocJpegGetErrorName ~, VALUE, const char *
/* clang-format on */

#endif
