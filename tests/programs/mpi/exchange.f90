! SPDX-License-Identifier: MIT
! SPDX-FileCopyrightText: the kymo authors
!
! Fortran's view of MPI: each call must be counted once, whatever the interface is made of.
program exchange
#ifdef USE_F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer, parameter :: rounds = 20, length = 100
  integer :: rank, size, left, right, error, i, total
  integer :: buffer(length), other(length * 64)
#ifdef USE_F08
  type(MPI_Request) :: requests(2)
  type(MPI_Comm) :: half
#else
  integer :: requests(2), half
#endif

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, size, error)
  left = mod(rank + size - 1, size)
  right = mod(rank + 1, size)
  buffer = rank
  other = 0
  do i = 1, rounds
    call MPI_Sendrecv(buffer, length, MPI_INTEGER, right, 5, other, length, MPI_INTEGER, left, 5, &
         MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    if (other(1) /= left) call MPI_Abort(MPI_COMM_WORLD, 3, error)
    if (mod(rank, 2) == 1) then
      call MPI_Recv(other, length, MPI_INTEGER, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    else if (rank + 1 < size) then
      call MPI_Send(buffer, length / 2, MPI_INTEGER, rank + 1, 1, MPI_COMM_WORLD, error)
    end if
    call MPI_Irecv(other, 20, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, requests(1), error)
    call MPI_Isend(buffer, 10, MPI_INTEGER, right, 1, MPI_COMM_WORLD, requests(2), error)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
    call MPI_Bcast(buffer, 7, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    buffer = rank
    call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (total /= size * (size - 1) / 2) call MPI_Abort(MPI_COMM_WORLD, 4, error)
    if (rank == 0) then
      call MPI_Gather(MPI_IN_PLACE, -77, MPI_DATATYPE_NULL, other, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    else
      call MPI_Gather(buffer, 3, MPI_INTEGER, other, -77, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD, error)
    end if
    call MPI_Barrier(MPI_COMM_WORLD, error)
  end do
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, half, error)
  call MPI_Comm_free(half, error)
  print '(a,i0,a,i0,a)', 'rank ', rank, ' of ', size, ' done'
  call MPI_Finalize(error)
end program exchange
