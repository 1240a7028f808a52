/* Functions of TVM's runtime by name, as calls through the slots that a loader fills: linked with code
 * that was made for a runtime with them. */
#include <tvm/runtime/tvm_abi.h>

__attribute__((weak)) void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int);
__attribute__((weak)) int (*__TVMBackendFreeWorkspace)(int, int, void *);
__attribute__((weak)) int (*__TVMBackendParallelLaunch)(FTVMParallelLambda, void *, int);
__attribute__((weak)) void (*__TVMAPISetLastError)(const char *);

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int dtype_code,
                               int dtype_bits) {
  return __TVMBackendAllocWorkspace(device_type, device_id, bytes, dtype_code, dtype_bits);
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *workspace) {
  return __TVMBackendFreeWorkspace(device_type, device_id, workspace);
}

int TVMBackendParallelLaunch(FTVMParallelLambda task, void *closure, int num_task) {
  return __TVMBackendParallelLaunch(task, closure, num_task);
}

void TVMAPISetLastError(const char *message) { __TVMAPISetLastError(message); }
