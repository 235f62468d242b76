/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The MPI library of the process: its PMPI_ functions, found by name, and the constants of the two
 * families. Open MPI: handles are addresses of exported objects (ompi_mpi_comm_world). MPICH, Intel
 * MPI, Cray MPICH and MVAPICH share an ABI (www.mpich.org/abi): handles are integers. A library of
 * another family is recorded without values.
 */
#include <dlfcn.h>
#include <string.h>

#include "common/array.h"
#include "common/loader.h"
#include "common/loader_state.h"
#include "wrappers/mpi/private.h"

struct mpi_library mpi_library;

/* Also where the library was opened locally, as Python modules are. */
void *mpi_library_find_symbol(const char *name)
{
	return loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, name);
}

struct library_function_slot {
	const char *name;
	void *slot; /* a pointer to a function, whatever its type */
};

static void find_library_functions(void)
{
	const struct library_function_slot entries[] = {
		{"PMPI_Initialized", &mpi_library.pmpi_initialized},
		{"PMPI_Finalized", &mpi_library.pmpi_finalized},
		{"PMPI_Get_library_version", &mpi_library.pmpi_get_library_version},
		{"PMPI_Type_size", &mpi_library.pmpi_type_size},
		{"PMPI_Type_size_x", &mpi_library.pmpi_type_size_x},
		{"PMPI_Get_elements_x", &mpi_library.pmpi_get_elements_x},
		{"PMPI_Test_cancelled", &mpi_library.pmpi_test_cancelled},
		{"PMPI_Comm_rank", &mpi_library.pmpi_comm_rank},
		{"PMPI_Comm_size", &mpi_library.pmpi_comm_size},
		{"PMPI_Comm_remote_size", &mpi_library.pmpi_comm_remote_size},
		{"PMPI_Comm_test_inter", &mpi_library.pmpi_comm_test_inter},
		{"PMPI_Comm_get_name", &mpi_library.pmpi_comm_get_name},
		{"PMPI_Comm_group", &mpi_library.pmpi_comm_group},
		{"PMPI_Comm_remote_group", &mpi_library.pmpi_comm_remote_group},
		{"PMPI_Group_translate_ranks", &mpi_library.pmpi_group_translate_ranks},
		{"PMPI_Group_free", &mpi_library.pmpi_group_free},
		{"PMPI_Comm_f2c", &mpi_library.pmpi_comm_f2c},
		{"PMPI_Type_f2c", &mpi_library.pmpi_type_f2c},
		{"PMPI_Request_f2c", &mpi_library.pmpi_request_f2c},
		{"PMPI_Message_f2c", &mpi_library.pmpi_message_f2c},
	};

	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		void *symbol = mpi_library_find_symbol(entries[i].name);

		memcpy(entries[i].slot, &symbol, sizeof(symbol));
	}
}

static uintptr_t find_library_symbol_address(const char *name)
{
	return (uintptr_t)mpi_library_find_symbol(name);
}

/* What a pointer variable of the library points to. */
static uintptr_t read_library_pointer(const char *name)
{
	const uintptr_t *variable = mpi_library_find_symbol(name);

	return variable ? *variable : 0;
}

/* mpi.h and mpif-constants.h of Open MPI 1.x to 5.x. */
static void set_open_mpi_constants(void)
{
	mpi_library.flavor = MPI_FLAVOR_OPEN_MPI;
	mpi_library.world_communicator = find_library_symbol_address("ompi_mpi_comm_world");
	mpi_library.self_communicator = find_library_symbol_address("ompi_mpi_comm_self");
	mpi_library.null_datatype = find_library_symbol_address("ompi_mpi_datatype_null");
	mpi_library.byte_datatype = find_library_symbol_address("ompi_mpi_byte");
	mpi_library.null_process_rank = -2;
	mpi_library.root_marker_rank = -4;
	mpi_library.any_source_rank = -1;
	mpi_library.any_tag = -1;
	mpi_library.status_source_index = 0; /* MPI_SOURCE, MPI_TAG, MPI_ERROR, … */
	mpi_library.status_tag_index = 1;
	mpi_library.status_bytes = 24;
	mpi_library.null_communicator = find_library_symbol_address("ompi_mpi_comm_null");
	mpi_library.in_place_addresses[0] = 1;
	mpi_library.in_place_addresses[1] = find_library_symbol_address("mpi_fortran_in_place_");
	mpi_library.in_place_addresses[2] = find_library_symbol_address("mpi_fortran_in_place");
	mpi_library.status_ignore_addresses[0] =
		find_library_symbol_address("mpi_fortran_status_ignore_");
	mpi_library.status_ignore_addresses[1] =
		find_library_symbol_address("mpi_fortran_status_ignore");
	mpi_library.status_ignore_addresses[2] = read_library_pointer("MPI_F_STATUS_IGNORE");
	mpi_library.statuses_ignore_addresses[0] =
		find_library_symbol_address("mpi_fortran_statuses_ignore_");
	mpi_library.statuses_ignore_addresses[1] =
		find_library_symbol_address("mpi_fortran_statuses_ignore");
	mpi_library.statuses_ignore_addresses[2] = read_library_pointer("MPI_F_STATUSES_IGNORE");
}

/* mpi.h of MPICH 3.1 to 4.x: the common ABI. */
static void set_mpich_constants(void)
{
	mpi_library.flavor = MPI_FLAVOR_MPICH;
	mpi_library.pmpi_comm_f2c = NULL;
	mpi_library.pmpi_type_f2c = NULL;
	mpi_library.pmpi_request_f2c = NULL;
	mpi_library.pmpi_message_f2c = NULL;
	mpi_library.world_communicator = 0x44000000;
	mpi_library.self_communicator = 0x44000001;
	mpi_library.null_datatype = 0x0c000000;
	mpi_library.byte_datatype = 0x4c00010d;
	mpi_library.null_process_rank = -1;
	mpi_library.root_marker_rank = -3;
	mpi_library.any_source_rank = -2;
	mpi_library.any_tag = -1;
	mpi_library.status_source_index = 2; /* behind the count, which is 64 bits wide */
	mpi_library.status_tag_index = 3;
	mpi_library.status_bytes = 20;
	mpi_library.null_communicator = 0x04000000;
	mpi_library.in_place_addresses[0] = UINTPTR_MAX;
	mpi_library.in_place_addresses[1] = read_library_pointer("MPIR_F_MPI_IN_PLACE");
	mpi_library.in_place_addresses[2] = find_library_symbol_address("MPIR_F08_MPI_IN_PLACE");
	mpi_library.status_ignore_addresses[0] = read_library_pointer("MPI_F_STATUS_IGNORE");
	mpi_library.status_ignore_addresses[1] =
		find_library_symbol_address("MPIR_F08_MPI_STATUS_IGNORE_OBJ");
	mpi_library.status_ignore_addresses[2] = read_library_pointer("MPI_F08_STATUS_IGNORE");
	mpi_library.statuses_ignore_addresses[0] = read_library_pointer("MPI_F_STATUSES_IGNORE");
	mpi_library.statuses_ignore_addresses[1] =
		find_library_symbol_address("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
	mpi_library.statuses_ignore_addresses[2] = read_library_pointer("MPI_F08_STATUSES_IGNORE");
}

static bool is_mpich_by_library_version(void)
{
	static const char *const families[] = {"MPICH", "MVAPICH", "Intel(R) MPI"};
	char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING: 8192 in MPICH, 256 in Open MPI */
	int length = 0;

	if (!mpi_library.pmpi_get_library_version ||
	    mpi_library.pmpi_get_library_version(version, &length) || length <= 0 ||
	    (size_t)length >= sizeof(version))
		return false;
	version[length] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		if (strstr(version, families[i]))
			return true;
	}
	return false;
}

/* Its functions are called from now on. */
static void keep_library_loaded(const void *init)
{
	Dl_info where;

	if (init && dladdr(init, &where) && where.dli_fname)
		loader_dlopen_keeping_dlerror(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

bool mpi_library_identify(const void *init)
{
	keep_library_loaded(init);
	find_library_functions();
	if (!mpi_library.pmpi_type_size || !mpi_library.pmpi_comm_rank ||
	    !mpi_library.pmpi_comm_size || !mpi_library.pmpi_comm_test_inter ||
	    !mpi_library.pmpi_comm_get_name)
		return false;
	if (mpi_library_find_symbol("ompi_mpi_comm_world"))
		set_open_mpi_constants();
	else if (is_mpich_by_library_version())
		set_mpich_constants();
	return mpi_library.flavor != MPI_FLAVOR_UNKNOWN;
}
