/* Runs a graph whose code is linked in: what a program without any of TVM does with an archive.
 *
 *     host name|registry PARAMS INPUTS OUTPUTS RUNS
 *
 * PARAMS holds the data of all parameters one after another, INPUTS those of RUNS runs, OUTPUTS gets
 * those of RUNS runs. Functions are those linked by name, or those that TVMSystemLibEntryPoint lists.
 * Each storage starts as what is no number, at a multiple of 64 bytes that is none of 128.
 */
#include "backend.h"
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xff, MAX_ARGUMENTS = 64 };

static char *arena;

static void fail(const char *what, const char *which) {
  fprintf(stderr, "%s %s %s\n", what, which, backend_error());
  exit(1);
}

#ifdef WITH_REGISTRY
/* The number of names is one byte where the first name follows it; its second byte, where there are
 * two, is below all characters of names. */
static TVMBackendPackedCFunc registered(const char *name) {
  const TVMFuncRegistry *registry = TVMSystemLibEntryPoint()->registry;
  const unsigned char *head = (const unsigned char *)registry->names;
  int is_wide = head[1] < ' ';
  static int is_said;
  if (!is_said++) puts(is_wide ? "16 bits" : "a byte");
  int count = is_wide ? head[0] | head[1] << 8 : head[0];
  const char *each = registry->names + 1 + is_wide;
  for (int index = 0; index < count; ++index, each += strlen(each) + 1)
    if (strcmp(each, name) == 0) return registry->funcs[index];
  fail("not registered:", name);
  return NULL;
}
#else
static TVMBackendPackedCFunc registered(const char *name) {
  fail("there is no TVMSystemLibEntryPoint for", name);
  return NULL;
}
#endif

static void read_entries(FILE *file, const int32_t *list, int32_t count) {
  for (int32_t index = 0; index < count; ++index) {
    const Entry *entry = &entries[list[index]];
    if (fread(arena + entry->offset, 1, entry->bytes, file) != entry->bytes)
      fail("a file is too short", "");
  }
}

static void call(const Call *call, TVMBackendPackedCFunc function) {
  DLTensor tensors[MAX_ARGUMENTS];
  TVMValue values[MAX_ARGUMENTS], result = {0};
  int32_t codes[MAX_ARGUMENTS], result_code = kTVMNullptr;
  if (call->count > MAX_ARGUMENTS) fail("too many arguments of", call->name);
  for (int32_t index = 0; index < call->count; ++index) {
    const Entry *entry = &entries[call->entries[index]];
    tensors[index] = (DLTensor){.data = arena + entry->offset, .device = {1, 0}, .ndim = entry->ndim,
                                .dtype = entry->dtype, .shape = (int64_t *)entry->shape};
    values[index].v_handle = &tensors[index];
    codes[index] = kTVMNDArrayHandle;
  }
  if (function(values, codes, call->count, &result, &result_code, NULL)) fail("failed:", call->name);
}

static void check_gaps(void) {
  for (int32_t index = 0; index < gap_count; ++index)
    for (uint64_t at = 0; at < gaps[index].bytes; ++at)
      if ((unsigned char)arena[gaps[index].offset + at] != POISON)
        fail("written outside of storages", "");
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  int by_name = strcmp(argv[1], "name") == 0, runs = atoi(argv[5]);
  FILE *given_params = fopen(argv[2], "rb"), *given = fopen(argv[3], "rb");
  FILE *made = fopen(argv[4], "wb");
  if (!given_params || !given || !made) fail("a file does not open", "");
  arena = aligned_alloc(128, arena_bytes);
  if (!arena) fail("no memory", "");
  memset(arena, POISON, arena_bytes);
  read_entries(given_params, params, param_count);
  for (int run = 0; run < runs; ++run) {
    read_entries(given, inputs, input_count);
    for (int32_t index = 0; index < call_count; ++index)
      call(&calls[index], by_name ? calls[index].function : registered(calls[index].name));
    for (int32_t index = 0; index < output_count; ++index) {
      const Entry *entry = &entries[outputs[index]];
      fwrite(arena + entry->offset, 1, entry->bytes, made);
    }
  }
  check_gaps();
  if (backend_live()) fail("workspace is not given back in order", "");
  return fclose(made) ? 1 : 0;
}
