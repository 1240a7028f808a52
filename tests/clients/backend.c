#include "backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LIVE = 256, ALIGNMENT = 64, TASKS = 3 };

static void *live[MAX_LIVE];
static int live_count, out_of_order;
static char error[1024];

const char *backend_error(void) { return error; }

int backend_live(void) { return out_of_order ? -1 : live_count; }

void TVMAPISetLastError(const char *message) { snprintf(error, sizeof error, "%s", message); }

/* Filled with what is no number, so that nothing relies on zeros. */
void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t bytes, int dtype_code,
                               int dtype_bits) {
  (void)device_id, (void)dtype_code, (void)dtype_bits;
  if (device_type != 1 || live_count == MAX_LIVE) return NULL;
  size_t rounded = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  void *workspace = aligned_alloc(ALIGNMENT, rounded);
  if (!workspace) return NULL;
  memset(workspace, 0xff, rounded);
  return live[live_count++] = workspace;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *workspace) {
  (void)device_type, (void)device_id;
  if (live_count == 0 || live[live_count - 1] != workspace) {
    out_of_order = 1;
    return -1;
  }
  free(live[--live_count]);
  return 0;
}

/* One task after another, several where it is not said how many. */
int TVMBackendParallelLaunch(FTVMParallelLambda task, void *closure, int num_task) {
  TVMParallelGroupEnv env = {NULL, num_task > 0 ? num_task : TASKS};
  for (int id = 0; id < env.num_task; ++id) {
    int code = task(id, &env, closure);
    if (code) return code;
  }
  return 0;
}
