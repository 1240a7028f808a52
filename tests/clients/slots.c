/* Fills the weak slots of generated code when it is linked: a strong definition goes before a weak. */
#include <tvm/runtime/tvm_abi.h>

void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = TVMBackendAllocWorkspace;
int (*__TVMBackendFreeWorkspace)(int, int, void *) = TVMBackendFreeWorkspace;
int (*__TVMBackendParallelLaunch)(FTVMParallelLambda, void *, int) = TVMBackendParallelLaunch;
void (*__TVMAPISetLastError)(const char *) = TVMAPISetLastError;
