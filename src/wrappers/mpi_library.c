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

#include "wrappers/mpi_private.h"

struct mpi_library mpi_library;

/* The library may have been opened locally, as Python modules are: then only a handle of it helps.
 */
void *mpi_library_symbol(const char *name, const void *init)
{
	void *symbol = dlsym(RTLD_DEFAULT, name), *handle;
	Dl_info where;

	if (symbol || !init || !dladdr(init, &where) || !where.dli_fname)
		return symbol;
	handle = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	return handle ? dlsym(handle, name) : NULL; /* stays open, as it is in use */
}

struct entry {
	const char *name;
	void *slot; /* a pointer to a function, whatever its type */
};

static void find_functions(const void *init)
{
	const struct entry entries[] = {
		{"PMPI_Initialized", &mpi_library.initialized},
		{"PMPI_Finalized", &mpi_library.finalized},
		{"PMPI_Get_library_version", &mpi_library.get_library_version},
		{"PMPI_Type_size", &mpi_library.type_size},
		{"PMPI_Type_size_x", &mpi_library.type_size_x},
		{"PMPI_Get_elements_x", &mpi_library.get_elements_x},
		{"PMPI_Comm_rank", &mpi_library.comm_rank},
		{"PMPI_Comm_size", &mpi_library.comm_size},
		{"PMPI_Comm_remote_size", &mpi_library.comm_remote_size},
		{"PMPI_Comm_test_inter", &mpi_library.comm_test_inter},
		{"PMPI_Comm_get_name", &mpi_library.comm_get_name},
		{"PMPI_Comm_group", &mpi_library.comm_group},
		{"PMPI_Comm_remote_group", &mpi_library.comm_remote_group},
		{"PMPI_Group_translate_ranks", &mpi_library.group_translate_ranks},
		{"PMPI_Group_free", &mpi_library.group_free},
		{"PMPI_Comm_f2c", &mpi_library.comm_f2c},
		{"PMPI_Type_f2c", &mpi_library.type_f2c},
	};

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *symbol = mpi_library_symbol(entries[i].name, init);

		memcpy(entries[i].slot, &symbol, sizeof(symbol));
	}
}

static uintptr_t address(const char *name, const void *init)
{
	return (uintptr_t)mpi_library_symbol(name, init);
}

/* What a pointer variable of the library points to. */
static uintptr_t pointed(const char *name, const void *init)
{
	const uintptr_t *variable = mpi_library_symbol(name, init);

	return variable ? *variable : 0;
}

/* mpi.h and mpif-constants.h of Open MPI 1.x to 5.x. */
static void set_open_mpi(const void *init)
{
	mpi_library.flavor = MPI_FLAVOR_OPEN_MPI;
	mpi_library.world = address("ompi_mpi_comm_world", init);
	mpi_library.type_null = address("ompi_mpi_datatype_null", init);
	mpi_library.type_byte = address("ompi_mpi_byte", init);
	mpi_library.proc_null = -2;
	mpi_library.root = -4;
	mpi_library.in_place[0] = 1;
	mpi_library.in_place[1] = address("mpi_fortran_in_place_", init);
	mpi_library.in_place[2] = address("mpi_fortran_in_place", init);
	mpi_library.status_ignore[0] = address("mpi_fortran_status_ignore_", init);
	mpi_library.status_ignore[1] = address("mpi_fortran_status_ignore", init);
	mpi_library.status_ignore[2] = pointed("MPI_F_STATUS_IGNORE", init);
}

/* mpi.h of MPICH 3.1 to 4.x: the common ABI. */
static void set_mpich(const void *init)
{
	mpi_library.flavor = MPI_FLAVOR_MPICH;
	mpi_library.comm_f2c = NULL;
	mpi_library.type_f2c = NULL;
	mpi_library.world = 0x44000000;
	mpi_library.type_null = 0x0c000000;
	mpi_library.type_byte = 0x4c00010d;
	mpi_library.proc_null = -1;
	mpi_library.root = -3;
	mpi_library.in_place[0] = UINTPTR_MAX;
	mpi_library.in_place[1] = pointed("MPIR_F_MPI_IN_PLACE", init);
	mpi_library.in_place[2] = address("MPIR_F08_MPI_IN_PLACE", init);
	mpi_library.status_ignore[0] = pointed("MPI_F_STATUS_IGNORE", init);
	mpi_library.status_ignore[1] = address("MPIR_F08_MPI_STATUS_IGNORE_OBJ", init);
}

static bool is_mpich(void)
{
	static const char *const families[] = {"MPICH", "MVAPICH", "Intel(R) MPI"};
	char version[8192]; /* MPI_MAX_LIBRARY_VERSION_STRING: 8192 in MPICH, 256 in Open MPI */
	int length = 0;

	if (!mpi_library.get_library_version || mpi_library.get_library_version(version, &length) ||
	    length <= 0 || (size_t)length >= sizeof(version))
		return false;
	version[length] = 0;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if (strstr(version, families[i]))
			return true;
	}
	return false;
}

bool mpi_library_find(const void *init)
{
	find_functions(init);
	if (!mpi_library.type_size || !mpi_library.comm_rank || !mpi_library.comm_size ||
	    !mpi_library.comm_test_inter || !mpi_library.comm_get_name)
		return false;
	if (mpi_library_symbol("ompi_mpi_comm_world", init))
		set_open_mpi(init);
	else if (is_mpich())
		set_mpich(init);
	return mpi_library.flavor != MPI_FLAVOR_UNKNOWN;
}
