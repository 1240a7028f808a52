/* The runtime that generated code asks for workspace, threads and a place for its errors. */
#ifndef BACKEND_H
#define BACKEND_H

#include <tvm/runtime/tvm_abi.h>

/* The last error that generated code set, or "". */
const char *backend_error(void);

/* Pieces of workspace that are taken and not given back; -1 once they were not given back in the
 * reverse order in which they were taken, which TVM's C runtime demands. */
int backend_live(void);

#endif
