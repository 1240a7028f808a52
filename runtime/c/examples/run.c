/* Runs a model on zeros, in memory of its own, and prints the first numbers of each output.
 *
 *     cc run.c -lirc_runtime -o run && ./run MODEL [LIBRARY]
 */
#include <irc_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_wrong(irc_error *error) {
  if (!error) return 0;
  fprintf(stderr, "%s\n", irc_error_message(error));
  irc_error_free(error);
  return 1;
}

static void print_first(const irc_port *port, const void *data, size_t bytes) {
  printf("%s %s", port->name, port->dtype);
  const int is_float = port->code == 2 && port->bits == 32;
  for (size_t i = 0; is_float && i < 8 && i < bytes / 4; ++i) printf(" %g", ((const float *)data)[i]);
  putchar('\n');
}

int main(int argc, char **argv) {
  if (argc < 2 || irc_abi_version() != IRC_RUNTIME_ABI) return 2;

  /* The model: code and parameters, for all threads. */
  irc_open_options options = {.size = sizeof options, .library = argc > 2 ? argv[2] : NULL};
  irc_model *model;
  if (is_wrong(irc_model_open(argv[1], &options, &model))) return 1;

  /* A context: memory, for this thread. */
  irc_context *context;
  if (is_wrong(irc_context_new(model, NULL, &context))) return 1;

  for (size_t i = 0; i < irc_model_input_count(model); ++i) {
    irc_port port;
    if (is_wrong(irc_model_input(model, i, &port))) return 1;
    void *zeros = calloc(1, port.bytes);
    if (is_wrong(irc_context_set_input(context, i, zeros, port.bytes))) return 1;
    free(zeros);
  }
  if (is_wrong(irc_context_run(context))) return 1;
  for (size_t i = 0; i < irc_model_output_count(model); ++i) {
    irc_port port;
    const void *data;
    size_t bytes;
    if (is_wrong(irc_model_output(model, i, &port))) return 1;
    if (is_wrong(irc_context_output(context, i, &data, &bytes))) return 1;
    print_first(&port, data, bytes);
  }
  irc_context_free(context);
  irc_model_free(model);
  return 0;
}
