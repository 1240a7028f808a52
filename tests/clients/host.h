/* A graph as tables, which host.py writes from graph.json. */
#ifndef HOST_H
#define HOST_H

#include <tvm/runtime/tvm_abi.h>

typedef struct {
  uint64_t offset; /* of its storage in the arena */
  uint64_t bytes;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[8];
} Entry;

typedef struct {
  const char *name;
  TVMBackendPackedCFunc function;
  const int32_t *entries; /* inputs, then outputs */
  int32_t count;
} Call;

/* Bytes of the arena between storages that nobody may write. */
typedef struct {
  uint64_t offset, bytes;
} Gap;

extern const Entry entries[];
extern const Call calls[];
extern const Gap gaps[];
extern const int32_t inputs[], params[], outputs[];
extern const int32_t call_count, gap_count, input_count, param_count, output_count;
extern const uint64_t arena_bytes;

#endif
