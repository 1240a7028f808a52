/* Times of the runtime, as a program in C sees them, in microseconds: the least and the median.
 *
 * usage: speed TWO_CALLS MLP LARGE: three archives with their code */
#include <irc_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 41, RUNS = 20000 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void must(irc_error *error) {
  if (!error) return;
  fprintf(stderr, "%s\n", irc_error_message(error));
  exit(1);
}

static int compare(const void *a, const void *b) {
  const double left = *(const double *)a, right = *(const double *)b;
  return (left > right) - (left < right);
}

static void print(const char *what, double *times) {
  qsort(times, ROUNDS, sizeof *times, compare);
  printf("%-36s %10.3f %10.3f\n", what, times[0], times[ROUNDS / 2]);
}

static void one_run(const char *path) {
  double times[ROUNDS];
  irc_model *model;
  irc_context *context;
  must(irc_model_open(path, NULL, &model));
  must(irc_context_new(model, NULL, &context));
  for (int round = 0; round < ROUNDS; ++round) {
    const double start = now();
    for (int i = 0; i < RUNS; ++i) must(irc_context_run(context));
    times[round] = (now() - start) / RUNS;
  }
  print("one run of a graph of two calls", times);
  irc_context_free(context), irc_model_free(model);
}

static void first_run(const char *path) {
  double times[ROUNDS];
  for (int round = 0; round < ROUNDS; ++round) {
    float input[64] = {1}, output[10];
    irc_model *model;
    irc_context *context;
    const double start = now();
    must(irc_model_open(path, NULL, &model));
    must(irc_context_new(model, NULL, &context));
    must(irc_context_set_input(context, 0, input, sizeof input));
    must(irc_context_run(context));
    must(irc_context_copy_output(context, 0, output, sizeof output));
    times[round] = now() - start;
    irc_context_free(context), irc_model_free(model);
  }
  print("open and first run of an MLP", times);
}

static void open_large(const char *path) {
  double times[ROUNDS];
  for (int round = 0; round < ROUNDS; ++round) {
    irc_model *model;
    const double start = now();
    must(irc_model_open(path, NULL, &model));
    times[round] = now() - start;
    irc_model_free(model);
  }
  print("open an archive of 100 MB", times);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  one_run(argv[1]), first_run(argv[2]), open_large(argv[3]);
  return 0;
}
