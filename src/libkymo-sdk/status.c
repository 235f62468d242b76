/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Status codes and the codes of PC samples in words.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/state.h"

static const struct {
	const char *name, *text;
} statuses[ROCPROFILER_STATUS_LAST] = {
#define STATUS(code, text) [ROCPROFILER_STATUS_##code] = {"ROCPROFILER_STATUS_" #code, text}
	STATUS(SUCCESS, "Success"),
	STATUS(ERROR, "Something went wrong that no other code is for"),
	STATUS(ERROR_CONTEXT_NOT_FOUND, "There is no such context, or it is not active"),
	STATUS(ERROR_BUFFER_NOT_FOUND, "There is no such buffer"),
	STATUS(ERROR_KIND_NOT_FOUND, "There is no such kind"),
	STATUS(ERROR_OPERATION_NOT_FOUND, "The kind has no such operation"),
	STATUS(ERROR_THREAD_NOT_FOUND, "There is no such callback thread"),
	STATUS(ERROR_AGENT_NOT_FOUND, "There is no such agent"),
	STATUS(ERROR_COUNTER_NOT_FOUND, "There is no such counter"),
	STATUS(ERROR_CONTEXT_ERROR, "The context is in use for something else"),
	STATUS(ERROR_CONTEXT_INVALID, "The context lacks what this needs"),
	STATUS(ERROR_CONTEXT_NOT_STARTED, "The context is not started, or could not be"),
	STATUS(ERROR_CONTEXT_CONFLICT, "Another context or service excludes this one"),
	STATUS(ERROR_CONTEXT_ID_NOT_ZERO, "The id to be filled in is not 0: a context already?"),
	STATUS(ERROR_BUFFER_BUSY, "The buffer is being handed over right now"),
	STATUS(ERROR_SERVICE_ALREADY_CONFIGURED, "The service has been configured already"),
	STATUS(ERROR_CONFIGURATION_LOCKED, "Only while tools are initialized can this be done"),
	STATUS(ERROR_NOT_IMPLEMENTED, "No device here can do this"),
	STATUS(ERROR_INCOMPATIBLE_ABI, "The caller knows a struct of another size or version"),
	STATUS(ERROR_INVALID_ARGUMENT, "An argument is NULL or out of range"),
	STATUS(ERROR_METRIC_NOT_VALID_FOR_AGENT, "The agent does not have this counter"),
	STATUS(ERROR_FINALIZED, "The library has ended its work"),
	STATUS(ERROR_HSA_NOT_LOADED, "The runtime of the device has not been initialized yet"),
	STATUS(ERROR_DIM_NOT_FOUND, "The counter has no such dimension"),
	STATUS(ERROR_PROFILE_COUNTER_NOT_FOUND, "The counter config has no such counter"),
	STATUS(ERROR_AST_GENERATION_FAILED, "The counter's expression cannot be understood"),
	STATUS(ERROR_AST_NOT_FOUND, "The counter's expression is not known"),
	STATUS(ERROR_AQL_NO_EVENT_COORD, "The place of an event in the device is not known"),
	STATUS(ERROR_INCOMPATIBLE_KERNEL, "The device's kernel driver is too old for this"),
	STATUS(ERROR_OUT_OF_RESOURCES, "There is not enough room"),
	STATUS(ERROR_PROFILE_NOT_FOUND, "There is no such counter config"),
	STATUS(ERROR_AGENT_DISPATCH_CONFLICT, "A context counts launches or devices, not both"),
	STATUS(INTERNAL_NO_AGENT_CONTEXT, "No context counts devices"),
	STATUS(ERROR_SAMPLE_RATE_EXCEEDED, "The sample before this one is not finished"),
	STATUS(ERROR_NO_PROFILE_QUEUE, "The agent has no queue for profiling"),
	STATUS(ERROR_NO_HARDWARE_COUNTERS, "The counter config has no counter of the hardware"),
	STATUS(ERROR_AGENT_MISMATCH, "The counter config is another agent's"),
	STATUS(ERROR_NOT_AVAILABLE, "Somebody else holds what this needs"),
	STATUS(ERROR_EXCEEDS_HW_LIMIT, "More counters than the hardware can count at once"),
	STATUS(ERROR_AGENT_ARCH_NOT_SUPPORTED, "No counters are known for agents like this one"),
	STATUS(ERROR_PERMISSION_DENIED, "The process may not do this"),
};

SDK_EXPORT const char *rocprofiler_get_status_name(rocprofiler_status_t status)
{
	return (unsigned)status < ROCPROFILER_STATUS_LAST ? statuses[status].name : NULL;
}

SDK_EXPORT const char *rocprofiler_get_status_string(rocprofiler_status_t status)
{
	return (unsigned)status < ROCPROFILER_STATUS_LAST ? statuses[status].text : NULL;
}

SDK_EXPORT const char *
rocprofiler_get_pc_sampling_instruction_type_name(rocprofiler_pc_sampling_instruction_type_t type)
{
#define TYPE(code)                                                                                 \
	[ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_##code] =                                        \
		"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_" #code
	static const char *const names[ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST] = {
		TYPE(NONE),         TYPE(VALU),    TYPE(MATRIX),     TYPE(SCALAR),
		TYPE(TEX),          TYPE(LDS),     TYPE(LDS_DIRECT), TYPE(FLAT),
		TYPE(EXPORT),       TYPE(MESSAGE), TYPE(BARRIER),    TYPE(BRANCH_NOT_TAKEN),
		TYPE(BRANCH_TAKEN), TYPE(JUMP),    TYPE(OTHER),      TYPE(NO_INST),
		TYPE(DUAL_VALU),
	};

	return (unsigned)type < ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST ? names[type] : NULL;
}

SDK_EXPORT const char *rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
	rocprofiler_pc_sampling_instruction_not_issued_reason_t reason)
{
#define REASON(code)                                                                               \
	[ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_##code] =                           \
		"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_" #code
	static const char *const names[ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST] =
		{
			REASON(NONE),
			REASON(NO_INSTRUCTION_AVAILABLE),
			REASON(ALU_DEPENDENCY),
			REASON(WAITCNT),
			REASON(INTERNAL_INSTRUCTION),
			REASON(BARRIER_WAIT),
			REASON(ARBITER_NOT_WIN),
			REASON(ARBITER_WIN_EX_STALL),
			REASON(OTHER_WAIT),
			REASON(SLEEP_WAIT),
		};

	return (unsigned)reason < ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST
		       ? names[reason]
		       : NULL;
}
