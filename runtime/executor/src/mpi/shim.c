// The few calls of MPI that ranks need, with plain types: the handles of MPI differ from one
// implementation to the next. Everything returns MPI's error code, 0 when all is well.

#include <mpi.h>
#include <stdlib.h>

static const int TAG = 0x1c;

int irc_mpi_start(int *rank, int *size) {
  int provided = 0;
  int error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
  if (error != MPI_SUCCESS)
    return error;
  if (provided < MPI_THREAD_FUNNELED)
    return MPI_ERR_OTHER;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  return MPI_Comm_size(MPI_COMM_WORLD, size);
}

int irc_mpi_is_started(void) {
  int started = 0;
  MPI_Initialized(&started);
  return started;
}

int irc_mpi_end(void) { return MPI_Finalize(); }

void irc_mpi_abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  abort();
}

void irc_mpi_text(int error, char *text) {
  int length = 0;
  MPI_Error_string(error, text, &length);
}

int irc_mpi_text_capacity(void) { return MPI_MAX_ERROR_STRING; }

int irc_mpi_gather_lengths(int own, int *all) {
  return MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
}

int irc_mpi_gather(const void *own, int length, void *all, const int *lengths,
                   const int *places) {
  return MPI_Allgatherv(own, length, MPI_BYTE, all, lengths, places, MPI_BYTE,
                        MPI_COMM_WORLD);
}

int irc_mpi_send(const void *bytes, int length, int to, void **request) {
  MPI_Request *handle = malloc(sizeof *handle);
  if (handle == NULL)
    return MPI_ERR_NO_MEM;
  int error =
      MPI_Isend(bytes, length, MPI_BYTE, to, TAG, MPI_COMM_WORLD, handle);
  if (error != MPI_SUCCESS) {
    free(handle);
    return error;
  }
  *request = handle;
  return MPI_SUCCESS;
}

// Frees the request once it is done.
int irc_mpi_is_done(void *request, int *done) {
  int error = MPI_Test((MPI_Request *)request, done, MPI_STATUS_IGNORE);
  if (error == MPI_SUCCESS && *done)
    free(request);
  return error;
}

int irc_mpi_probe(int *found, int *from, int *length) {
  MPI_Status status;
  int error = MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, found, &status);
  if (error != MPI_SUCCESS || !*found)
    return error;
  *from = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_BYTE, length);
}

int irc_mpi_receive(void *bytes, int length, int from) {
  return MPI_Recv(bytes, length, MPI_BYTE, from, TAG, MPI_COMM_WORLD,
                  MPI_STATUS_IGNORE);
}
