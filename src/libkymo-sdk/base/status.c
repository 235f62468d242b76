/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Status codes and the codes of PC samples in words.
 */
#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-sdk/base/state.h"

static const struct {
	const char *name, *text;
} status_names_and_texts[ROCPROFILER_STATUS_LAST] = {
#define SDK_STATUS_NAME_AND_TEXT_ROW(code, text)                                                   \
	[ROCPROFILER_STATUS_##code] = {"ROCPROFILER_STATUS_" #code, text}
	SDK_STATUS_NAME_AND_TEXT_ROW(SUCCESS, "Success"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR, "Something went wrong that no other code is for"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONTEXT_NOT_FOUND,
				     "There is no such context, or it is not active"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_BUFFER_NOT_FOUND, "There is no such buffer"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_KIND_NOT_FOUND, "There is no such kind"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_OPERATION_NOT_FOUND, "The kind has no such operation"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_THREAD_NOT_FOUND, "There is no such callback thread"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AGENT_NOT_FOUND, "There is no such agent"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_COUNTER_NOT_FOUND, "There is no such counter"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONTEXT_ERROR,
				     "The context is in use for something else"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONTEXT_INVALID, "The context lacks what this needs"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONTEXT_NOT_STARTED,
				     "The context is not started, or could not be"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONTEXT_CONFLICT,
				     "Another context or service excludes this one"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONTEXT_ID_NOT_ZERO,
				     "The id to be filled in is not 0: a context already?"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_BUFFER_BUSY,
				     "The buffer is being handed over right now"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_SERVICE_ALREADY_CONFIGURED,
				     "The service has been configured already"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_CONFIGURATION_LOCKED,
				     "Only while tools are initialized can this be done"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_NOT_IMPLEMENTED, "No device here can do this"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_INCOMPATIBLE_ABI,
				     "The caller knows a struct of another size or version"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_INVALID_ARGUMENT, "An argument is NULL or out of range"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_METRIC_NOT_VALID_FOR_AGENT,
				     "The agent does not have this counter"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_FINALIZED, "The library has ended its work"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_HSA_NOT_LOADED,
				     "The runtime of the device has not been initialized yet"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_DIM_NOT_FOUND, "The counter has no such dimension"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_PROFILE_COUNTER_NOT_FOUND,
				     "The counter config has no such counter"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AST_GENERATION_FAILED,
				     "The counter's expression cannot be understood"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AST_NOT_FOUND, "The counter's expression is not known"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AQL_NO_EVENT_COORD,
				     "The place of an event in the device is not known"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_INCOMPATIBLE_KERNEL,
				     "The device's kernel driver is too old for this"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_OUT_OF_RESOURCES, "There is not enough room"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_PROFILE_NOT_FOUND, "There is no such counter config"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AGENT_DISPATCH_CONFLICT,
				     "A context counts launches or devices, not both"),
	SDK_STATUS_NAME_AND_TEXT_ROW(INTERNAL_NO_AGENT_CONTEXT, "No context counts devices"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_SAMPLE_RATE_EXCEEDED,
				     "The sample before this one is not finished"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_NO_PROFILE_QUEUE,
				     "The agent has no queue for profiling"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_NO_HARDWARE_COUNTERS,
				     "The counter config has no counter of the hardware"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AGENT_MISMATCH, "The counter config is another agent's"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_NOT_AVAILABLE, "Somebody else holds what this needs"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_EXCEEDS_HW_LIMIT,
				     "More counters than the hardware can count at once"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_AGENT_ARCH_NOT_SUPPORTED,
				     "No counters are known for agents like this one"),
	SDK_STATUS_NAME_AND_TEXT_ROW(ERROR_PERMISSION_DENIED, "The process may not do this"),
};

SDK_EXPORT const char *rocprofiler_get_status_name(rocprofiler_status_t status)
{
	return (unsigned)status < ROCPROFILER_STATUS_LAST ? status_names_and_texts[status].name
							  : NULL;
}

SDK_EXPORT const char *rocprofiler_get_status_string(rocprofiler_status_t status)
{
	return (unsigned)status < ROCPROFILER_STATUS_LAST ? status_names_and_texts[status].text
							  : NULL;
}

SDK_EXPORT const char *
rocprofiler_get_pc_sampling_instruction_type_name(rocprofiler_pc_sampling_instruction_type_t type)
{
#define INSTRUCTION_TYPE_NAME_ROW(code)                                                            \
	[ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_##code] =                                        \
		"ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_" #code
	static const char *const names[ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST] = {
		INSTRUCTION_TYPE_NAME_ROW(NONE),
		INSTRUCTION_TYPE_NAME_ROW(VALU),
		INSTRUCTION_TYPE_NAME_ROW(MATRIX),
		INSTRUCTION_TYPE_NAME_ROW(SCALAR),
		INSTRUCTION_TYPE_NAME_ROW(TEX),
		INSTRUCTION_TYPE_NAME_ROW(LDS),
		INSTRUCTION_TYPE_NAME_ROW(LDS_DIRECT),
		INSTRUCTION_TYPE_NAME_ROW(FLAT),
		INSTRUCTION_TYPE_NAME_ROW(EXPORT),
		INSTRUCTION_TYPE_NAME_ROW(MESSAGE),
		INSTRUCTION_TYPE_NAME_ROW(BARRIER),
		INSTRUCTION_TYPE_NAME_ROW(BRANCH_NOT_TAKEN),
		INSTRUCTION_TYPE_NAME_ROW(BRANCH_TAKEN),
		INSTRUCTION_TYPE_NAME_ROW(JUMP),
		INSTRUCTION_TYPE_NAME_ROW(OTHER),
		INSTRUCTION_TYPE_NAME_ROW(NO_INST),
		INSTRUCTION_TYPE_NAME_ROW(DUAL_VALU),
	};

	return (unsigned)type < ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_LAST ? names[type] : NULL;
}

SDK_EXPORT const char *rocprofiler_get_pc_sampling_instruction_not_issued_reason_name(
	rocprofiler_pc_sampling_instruction_not_issued_reason_t reason)
{
#define NOT_ISSUED_REASON_NAME_ROW(code)                                                           \
	[ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_##code] =                           \
		"ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_" #code
	static const char *const names[ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST] =
		{
			NOT_ISSUED_REASON_NAME_ROW(NONE),
			NOT_ISSUED_REASON_NAME_ROW(NO_INSTRUCTION_AVAILABLE),
			NOT_ISSUED_REASON_NAME_ROW(ALU_DEPENDENCY),
			NOT_ISSUED_REASON_NAME_ROW(WAITCNT),
			NOT_ISSUED_REASON_NAME_ROW(INTERNAL_INSTRUCTION),
			NOT_ISSUED_REASON_NAME_ROW(BARRIER_WAIT),
			NOT_ISSUED_REASON_NAME_ROW(ARBITER_NOT_WIN),
			NOT_ISSUED_REASON_NAME_ROW(ARBITER_WIN_EX_STALL),
			NOT_ISSUED_REASON_NAME_ROW(OTHER_WAIT),
			NOT_ISSUED_REASON_NAME_ROW(SLEEP_WAIT),
		};

	return (unsigned)reason < ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_LAST
		       ? names[reason]
		       : NULL;
}
