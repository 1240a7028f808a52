/* What code made by TVM 0.8 to 0.18 and its callers agree on: declarations of our own.
 *
 * C sources in archives of TVM include c_runtime_api.h, c_backend_api.h and crt/module.h, which are
 * this file.
 */
#ifndef TVM_ABI_H
#define TVM_ABI_H

#include <stddef.h>
#include <stdint.h>

#define TVM_DLL __attribute__((visibility("default")))

typedef struct {
  int32_t device_type, device_id;
} DLDevice;

/* code: 0 signed, 1 unsigned, 2 float, 3 pointer, 4 bfloat */
typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* NULL: row-major */
  uint64_t byte_offset;
} DLTensor;

typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

enum { kTVMOpaqueHandle = 3, kTVMNullptr = 4, kTVMDLTensorHandle = 7, kTVMNDArrayHandle = 13 };

typedef int32_t (*TVMBackendPackedCFunc)(TVMValue *args, int32_t *type_codes, int32_t num_args,
                                         TVMValue *result, int32_t *result_code, void *resource);

/* names: their number, then each with a zero. The number is one byte in TVM 0.8 and 0.9, and 16 bits,
 * little-endian, from 0.10 on. */
typedef struct {
  const char *names;
  const TVMBackendPackedCFunc *funcs;
} TVMFuncRegistry;

typedef struct {
  const TVMFuncRegistry *registry;
} TVMModule;

const TVMModule *TVMSystemLibEntryPoint(void);

typedef struct {
  void *sync_handle;
  int32_t num_task;
} TVMParallelGroupEnv;

typedef int (*FTVMParallelLambda)(int task_id, TVMParallelGroupEnv *env, void *closure);

TVM_DLL void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes,
                                       int dtype_code, int dtype_bits);
TVM_DLL int TVMBackendFreeWorkspace(int device_type, int device_id, void *workspace);
TVM_DLL int TVMBackendParallelLaunch(FTVMParallelLambda task, void *closure, int num_task);
TVM_DLL void TVMAPISetLastError(const char *message);

#endif
