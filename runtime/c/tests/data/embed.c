/* Everything in irc_runtime.h, used as a program in C uses it. Each check prints what does not hold.
 *
 * usage: embed ARCHIVE CODE FIXED SIZED: the small archive, its code linked, two compiled libraries */
#include <irc_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults;

#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) printf("line %d: %s\n", __LINE__, #condition), faults = 1; \
  } while (0)

/* The call goes well. */
#define FINE(call)                                                                     \
  do {                                                                                 \
    irc_error *error = (call);                                                         \
    if (error) printf("line %d: %s\n", __LINE__, irc_error_message(error)), faults = 1; \
    irc_error_free(error);                                                             \
  } while (0)

/* The call fails with a code and these words. */
#define FAILS(call, expected, words)                                          \
  do {                                                                        \
    irc_error *error = (call);                                                \
    const char *message = irc_error_message(error);                           \
    if (irc_error_code(error) != (expected) || !strstr(message, words))       \
      printf("line %d: %d %s\n", __LINE__, irc_error_code(error), message), faults = 1; \
    irc_error_free(error);                                                    \
  } while (0)

static irc_model *open_small(char **argv) {
  irc_open_options options = {.size = sizeof options, .library = argv[2]};
  irc_model *model = NULL;
  FINE(irc_model_open(argv[1], &options, &model));
  return model;
}

/* What the small model makes of 16 numbers. */
static void expect(const float *x, float outputs[2][4]) {
  for (int row = 0; row < 2; ++row)
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 8; ++k) sum += 2 * x[row * 8 + k] * (j * 8 + k - 16) * 0.125f;
      sum += (j - 2) * 0.5f;
      outputs[j / 2][row * 2 + j % 2] = sum > 0 ? sum : 0;
    }
}

static void run_small(irc_context *context, float step) {
  float x[16], expected[2][4], found[4];
  for (int i = 0; i < 16; ++i) x[i] = (i - 8) * step;
  expect(x, expected);
  FINE(irc_context_set_input(context, 0, x, sizeof x));
  FINE(irc_context_run(context));
  for (size_t output = 0; output < 2; ++output) {
    FINE(irc_context_copy_output(context, output, found, sizeof found));
    CHECK(!memcmp(found, expected[output], sizeof found));
  }
}

static void *worker(void *model) {
  irc_context *context;
  FINE(irc_context_new(model, NULL, &context));
  for (int round = 0; round < 200; ++round) run_small(context, 0.25f * (float)(round % 7));
  irc_context_free(context);
  return NULL;
}

static void threads(irc_model *model) {
  pthread_t ids[4];
  for (int i = 0; i < 4; ++i) pthread_create(&ids[i], NULL, worker, model);
  for (int i = 0; i < 4; ++i) pthread_join(ids[i], NULL);
}

/* A pool of the caller's: a thread for each task. */
typedef struct { irc_task task; void *data; uint32_t index; } Job;

static void *job(void *pointer) {
  Job *job = pointer;
  job->task(job->data, job->index);
  return NULL;
}

static void run_tasks(void *user, uint32_t tasks, irc_task task, void *data) {
  ++*(int *)user;
  pthread_t ids[8];
  Job jobs[8];
  for (uint32_t i = 0; i < tasks; ++i) {
    jobs[i] = (Job){task, data, i};
    pthread_create(&ids[i], NULL, job, &jobs[i]);
  }
  for (uint32_t i = 0; i < tasks; ++i) pthread_join(ids[i], NULL);
}

static void pools(irc_model *model) {
  int launches = 0;
  irc_pool pool = {.user = &launches, .threads = 2, .run = run_tasks};
  irc_context_options options = {.size = sizeof options, .pool = &pool};
  irc_context *context;
  FINE(irc_context_new(model, &options, &context));
  memset(&pool, 0, sizeof pool);
  run_small(context, 0.5f);
  CHECK(launches == 1);
  irc_context_free(context);
  options = (irc_context_options){.size = sizeof options, .threads = 3};
  FINE(irc_context_new(model, &options, &context));
  run_small(context, 0.5f);
  size_t bytes = irc_context_bytes(context);
  for (uint32_t count = 1; count < 6; ++count) {
    FINE(irc_context_set_threads(context, count));
    run_small(context, 0.25f);
  }
  CHECK(irc_context_bytes(context) >= bytes);
  FAILS(irc_context_set_threads(context, 0), IRC_ARGUMENT, "expected 1 to 1024 threads, found 0");
  FAILS(irc_context_set_threads(context, 10000), IRC_ARGUMENT, "expected 1 to 1024 threads, found 10000");
  run_small(context, 0.5f);
  irc_context_free(context);
  options.threads = 10000;
  FAILS(irc_context_new(model, &options, &context), IRC_ARGUMENT, "found 10000");
}

static void described(irc_model *model) {
  irc_port port;
  size_t index = 9;
  CHECK(irc_model_input_count(model) == 1 && irc_model_output_count(model) == 2);
  FINE(irc_model_input(model, 0, &port));
  CHECK(!strcmp(port.name, "x") && !strcmp(port.dtype, "f32"));
  CHECK(port.code == 2 && port.bits == 32 && port.lanes == 1 && port.bytes == 64);
  CHECK(port.rank == 2 && port.shape[0] == 2 && port.shape[1] == 8);
  FINE(irc_model_find_input(model, "x", &index));
  CHECK(index == 0);
  FINE(irc_model_find_output(model, "right", &index));
  CHECK(index == 1);
  FAILS(irc_model_find_input(model, "y", &index), IRC_ARGUMENT, "no input is named 'y'; the inputs are x");
  FAILS(irc_model_find_input(model, "\xff", &index), IRC_ARGUMENT, "not UTF-8");
  FAILS(irc_model_output(model, 2, &port), IRC_ARGUMENT, "there are 2 outputs, and none 2");
}

static void bound(irc_model *model) {
  _Alignas(64) float x[16], right[16];
  float expected[2][4];
  irc_context *context;
  const void *data;
  size_t bytes;
  FINE(irc_context_new(model, NULL, &context));
  CHECK(irc_context_bytes(context) > 0);
  FINE(irc_context_bind_input(context, 0, x, sizeof x));
  FINE(irc_context_bind_output(context, 1, right, 16));
  for (int i = 0; i < 16; ++i) x[i] = (float)i;
  expect(x, expected);
  FINE(irc_context_run(context));
  CHECK(!memcmp(right, expected[1], 16));
  FINE(irc_context_output(context, 1, &data, &bytes));
  CHECK(data == right && bytes == 16);
  FINE(irc_context_unbind_output(context, 1));
  memset(right, 0, sizeof right);
  run_small(context, -1.0f);
  CHECK(right[0] == 0);
  FAILS(irc_context_bind_input(context, 0, x + 1, sizeof x), IRC_ARGUMENT, "not aligned to 64");
  FAILS(irc_context_bind_output(context, 0, right, 64), IRC_ARGUMENT, "expected 16 bytes, f32[2,2]");
  FAILS(irc_context_set_input(context, 0, x, 4), IRC_ARGUMENT, "found 4 bytes");
  FAILS(irc_context_copy_output(context, 0, x, 4), IRC_ARGUMENT, "has 16 bytes, not 4");
  x[0] = __builtin_nanf("");
  FINE(irc_context_bind_input(context, 0, x, sizeof x));
  FAILS(irc_context_run(context), IRC_FAILED, "scale: the first number is none");
  run_small(context, 0.5f);
  /* A context outlives the handle of its model. */
  irc_context_free(context);
}

static void rejected(irc_model *model, char **argv) {
  irc_model *other = model;
  irc_context *context;
  irc_open_options options = {.size = 1};
  FAILS(irc_model_open("/nowhere.tar", NULL, &other), IRC_FILE, "/nowhere.tar");
  CHECK(!other);
  FAILS(irc_model_open(argv[1], NULL, &other), IRC_UNSUPPORTED, "it has no shared library");
  FAILS(irc_model_open(argv[0], NULL, &other), IRC_LOAD, "");
  FAILS(irc_model_open(argv[2], NULL, &other), IRC_UNSUPPORTED, "not a compiled irc model");
  FAILS(irc_model_open(argv[1], &options, &other), IRC_ARGUMENT, "size of the options");
  FAILS(irc_model_open_memory("no tar", 6, NULL, &other), IRC_INVALID, "mlf-");
  FAILS(irc_model_open(NULL, NULL, &other), IRC_ARGUMENT, "path is null");
  FAILS(irc_model_open(argv[1], NULL, NULL), IRC_ARGUMENT, "model is null");
  FAILS(irc_context_new(NULL, NULL, &context), IRC_ARGUMENT, "model is null");
  FAILS(irc_context_run(NULL), IRC_ARGUMENT, "context is null");
  irc_context_options little = {.size = sizeof little, .memory_limit = 1};
  FAILS(irc_context_new(model, &little, &context), IRC_MEMORY, "bytes of memory");
  CHECK(!context && irc_error_code(NULL) == IRC_OK && !*irc_error_message(NULL));
  irc_context_free(NULL), irc_model_free(NULL), irc_error_free(NULL);
  CHECK(!irc_model_input_count(NULL) && !irc_context_bytes(NULL));
}

static void from_memory(char **argv) {
  FILE *file = fopen(argv[1], "rb");
  fseek(file, 0, SEEK_END);
  size_t bytes = (size_t)ftell(file);
  rewind(file);
  /* Once aligned, and once not, so that parameters are copied. */
  for (size_t shift = 0; shift < 2; ++shift) {
    char *memory = aligned_alloc(64, (bytes + 127) / 64 * 64);
    rewind(file);
    CHECK(fread(memory + shift, 1, bytes, file) == bytes);
    irc_open_options options = {.size = sizeof options, .library = argv[2], .model = "default"};
    irc_model *model;
    irc_context *context;
    FINE(irc_model_open_memory(memory + shift, bytes, &options, &model));
    FINE(irc_context_new(model, NULL, &context));
    run_small(context, 0.5f);
    irc_context_free(context), irc_model_free(model), free(memory);
  }
  fclose(file);
}

static void fixed(char **argv) {
  irc_model *model;
  irc_context *context;
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
  _Alignas(64) float aligned[6];
  FINE(irc_model_open(argv[3], NULL, &model));
  FINE(irc_context_new(model, NULL, &context));
  irc_model_free(model);
  FINE(irc_context_set_input(context, 0, x, sizeof x));
  for (int again = 0; again < 2; ++again) {
    FINE(irc_context_run(context));
    FINE(irc_context_copy_output(context, 0, y, sizeof y));
    for (int i = 0; i < 6; ++i) CHECK(y[i] == x[i] + 1);
  }
  FINE(irc_context_bind_output(context, 0, aligned, sizeof aligned));
  FINE(irc_context_run(context));
  CHECK(aligned[5] == 7);
  x[0] = -1;
  FINE(irc_context_set_input(context, 0, x, sizeof x));
  FAILS(irc_context_run(context), IRC_FAILED, "code 3");
  irc_context_free(context);
}

static void sized(char **argv) {
  irc_model *model;
  irc_context *context;
  irc_port port;
  _Alignas(64) int32_t x[6] = {1, 2, 3, 4, 5, 6};
  const int32_t *y;
  const int64_t *shape;
  size_t bytes, rank;
  FINE(irc_model_open(argv[4], NULL, &model));
  FINE(irc_model_input(model, 0, &port));
  CHECK(port.code == 0 && port.bits == 32 && port.rank == 1 && port.shape[0] == -1 && !port.bytes);
  FINE(irc_context_new(model, NULL, &context));
  FAILS(irc_context_run(context), IRC_ARGUMENT, "input 'x': expected i32[N], found nothing");
  FAILS(irc_context_set_input(context, 0, x, 24), IRC_ARGUMENT, "no shape");
  FAILS(irc_context_output_shape(context, 0, &shape, &rank), IRC_ARGUMENT, "no run");
  for (int64_t count = 6; count > 0; count -= 2) {
    FINE(irc_context_set_input_shaped(context, 0, &count, 1, x, (size_t)count * 4));
    FINE(irc_context_run(context));
    FINE(irc_context_output_shape(context, 0, &shape, &rank));
    FINE(irc_context_output(context, 0, (const void **)&y, &bytes));
    CHECK(rank == 1 && shape[0] == count / 2 && bytes == (size_t)count * 2);
    CHECK(!memcmp(x, y, bytes));
  }
  int64_t four = 4, odd = 5, negative = -1;
  FINE(irc_context_bind_input_shaped(context, 0, &four, 1, x + 0, 16));
  FINE(irc_context_run(context));
  FINE(irc_context_bind_input_shaped(context, 0, &odd, 1, x, 20));
  FAILS(irc_context_run(context), IRC_FAILED, "N must be even: found 5 and 4");
  FAILS(irc_context_set_input_shaped(context, 0, &negative, 1, x, 24), IRC_ARGUMENT, "expected i32[N]");
  FAILS(irc_context_set_input_shaped(context, 0, &four, 1, x, 24), IRC_ARGUMENT, "found 24 bytes");
  FAILS(irc_context_bind_output(context, 0, x, 8), IRC_ARGUMENT, "makes its outputs itself");
  irc_context_free(context), irc_model_free(model);
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  CHECK(irc_abi_version() == IRC_RUNTIME_ABI);
  irc_model *model = open_small(argv);
  described(model), bound(model), threads(model), pools(model), rejected(model, argv);
  irc_model_free(model);
  from_memory(argv), fixed(argv), sized(argv);
  return faults;
}
