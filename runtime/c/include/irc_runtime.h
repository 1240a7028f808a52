/* The runtime of irc: runs Model Library Format archives, and libraries of `irc compile`.
 *
 * Made from runtime/c/src by cbindgen; docs/runtime.md explains it.
 */

#ifndef IRC_RUNTIME_H
#define IRC_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

// Version of this interface. It changes when a program compiled against an older header would not run.
#define IRC_RUNTIME_ABI 1

// The kind of an error.
typedef enum {
  // No error.
  IRC_OK = 0,
  // A file cannot be read.
  IRC_FILE = 1,
  // The archive is damaged or inconsistent; each line of the message is a diagnostic.
  IRC_INVALID = 2,
  // The file is valid, but this runtime cannot run it.
  IRC_UNSUPPORTED = 3,
  // The code uses instructions that this processor lacks; none of it has run.
  IRC_PROCESSOR = 4,
  // The system cannot load the code, or it lacks a function.
  IRC_LOAD = 5,
  // More memory is needed than allowed or available.
  IRC_MEMORY = 6,
  // The call is wrong: a null pointer, an unknown name, memory of the wrong size or alignment.
  IRC_ARGUMENT = 7,
  // The model failed while it ran.
  IRC_FAILED = 8,
  // An internal error of the runtime.
  IRC_INTERNAL = 9,
  // There is no GPU that can run the model, or no driver.
  IRC_DEVICE = 10,
} irc_code;

// The memory to run a model with. One thread may use it at a time.
typedef struct irc_context irc_context;

// An error; free it with `irc_error_free`.
typedef struct irc_error irc_error;

// A model: code and parameters. Any number of threads may use it at once.
typedef struct irc_model irc_model;

// A task of a call: `task(data, index)`.
typedef void (*irc_task)(void *data, uint32_t index);

// Threads of the caller, which run the tasks of parallel calls.
typedef struct {
  // Passed to `run`; must be valid as long as the contexts of the pool exist.
  void *user;
  // Number of tasks that run at once, at least 1.
  uint32_t threads;
  // Runs `task(data, 0)` to `task(data, tasks - 1)`, each once and on a thread of its own, concurrently, as
  // tasks may wait for each other; returns when all have finished. `tasks` is at most `threads`. Several
  // threads may call it at once.
  void (*run)(void *user, uint32_t tasks, irc_task task, void *data);
} irc_pool;

// How a context is created. Zeros select the defaults, except in `size`.
typedef struct {
  // Bytes of this struct: `sizeof(irc_context_options)`.
  size_t size;
  // The threads that code runs on; null selects `threads` threads of the runtime.
  const irc_pool *pool;
  // Without a pool: number of threads, 1024 at most. 0 and 1 are the calling thread alone.
  uint32_t threads;
  // Whether accesses beyond a tensor fault, to find code with such accesses.
  uint32_t guard;
  // Bytes of workspace of each thread, if the archive states less than its code uses.
  uint64_t workspace_bytes;
  // Maximum number of bytes of the context; 0 selects the size of the machine's memory.
  uint64_t memory_limit;
} irc_context_options;

// How a model is opened.
typedef struct {
  // Bytes of this struct: `sizeof(irc_open_options)`.
  size_t size;
  // The model of an archive of several; null selects the only one.
  const char *model;
  // Path of the archive's code as a shared library, for archives without one; or null.
  const char *library;
} irc_open_options;

// An input or output. Its pointers are valid as long as the model.
typedef struct {
  // Its name; outputs that the archive does not name are named by their numbers.
  const char *name;
  // The element type: `f32`, `bf16`, `i64`, `u8`, `bool`, …
  const char *dtype;
  // DLPack's code of the element type: 0 signed, 1 unsigned, 2 float, 4 bfloat; 255 of types that it
  // lacks.
  uint8_t code;
  // Bits of an element, 1 of a boolean, which takes a byte; 0 of types that DLPack lacks.
  uint8_t bits;
  // Lanes of an element: 1.
  uint16_t lanes;
  // Number of dimensions.
  uint32_t rank;
  // Extents, outermost first; -1 where they depend on the inputs. Null when there is no dimension.
  const int64_t *shape;
  // Bytes of the contents, dense and row-major; 0 if they depend on the inputs.
  uint64_t bytes;
} irc_port;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the interface of the library: `IRC_RUNTIME_ABI` of its header.
uint32_t irc_abi_version(void);

// Creates a context of a model, and stores it in `context`; `irc_context_free` frees it. `options` may be null.
irc_error *irc_context_new(const irc_model *model,
                           const irc_context_options *options,
                           irc_context **context);

// Frees a context; null is ignored.
void irc_context_free(irc_context *context);

// Bytes of memory that the context has between runs; 0 for null.
size_t irc_context_bytes(const irc_context *context);

// Runs later calls on this number of threads of the runtime, from 1 to 1024. Results do not depend on it. After an
// error, the context keeps its threads.
irc_error *irc_context_set_threads(irc_context *context,
                                   uint32_t count);

// Copies `bytes` bytes to an input, and ends its binding.
irc_error *irc_context_set_input(irc_context *context,
                                 size_t index,
                                 const void *data,
                                 size_t bytes);

// As `irc_context_set_input`, for models whose sizes depend on their inputs.
irc_error *irc_context_set_input_shaped(irc_context *context,
                                        size_t index,
                                        const int64_t *shape,
                                        size_t rank,
                                        const void *data,
                                        size_t bytes);

// Binds an input to memory of the caller, aligned to 64 bytes, until the context or the binding ends. The
// memory is read in place, and the model does not write there.
irc_error *irc_context_bind_input(irc_context *context,
                                  size_t index,
                                  const void *data,
                                  size_t bytes);

// As `irc_context_bind_input`, for models whose sizes depend on their inputs.
irc_error *irc_context_bind_input_shaped(irc_context *context,
                                         size_t index,
                                         const int64_t *shape,
                                         size_t rank,
                                         const void *data,
                                         size_t bytes);

// Binds an output to memory of the caller, aligned to 64 bytes, until the context or the binding ends. The memory must
// not overlap that of an input or another output, except that it may be all of the memory of the input that
// `irc_model_output_updates` returns; `irc_context_run` checks it. Models whose sizes depend on their inputs take no other
// memory than that.
irc_error *irc_context_bind_output(irc_context *context,
                                   size_t index,
                                   void *data,
                                   size_t bytes);

// Ends the binding of an output, which is in the memory of the context again.
irc_error *irc_context_unbind_output(irc_context *context, size_t index);

// Runs the model. Inputs keep their contents; those never set are zero.
irc_error *irc_context_run(irc_context *context);

// The address and size of an output: in bound memory, or in the context's own, which the next run
// overwrites.
irc_error *irc_context_output(const irc_context *context,
                              size_t index,
                              const void **data,
                              size_t *bytes);

// Copies an output to `data`, which must have exactly its size.
irc_error *irc_context_copy_output(const irc_context *context,
                                   size_t index,
                                   void *data,
                                   size_t bytes);

// The extents of an output: of a model whose sizes depend on its inputs, those of the last run, until
// the next.
irc_error *irc_context_output_shape(const irc_context *context,
                                    size_t index,
                                    const int64_t **shape,
                                    size_t *rank);

// The kind of an error; `IRC_OK` for null.
irc_code irc_error_code(const irc_error *error);

// The message, NUL-terminated; empty for null. It is valid until the error is freed.
const char *irc_error_message(const irc_error *error);

// Frees an error; null is ignored.
void irc_error_free(irc_error *error);

// Opens an archive, or a library of `irc compile`, and stores in `model` the model, which `irc_model_free`
// frees. `options` may be null. The file stays mapped and must not change.
irc_error *irc_model_open(const char *path,
                          const irc_open_options *options,
                          irc_model **model);

// As `irc_model_open`, of an archive in memory, which stays there, unchanged, as long as the model and
// its contexts. Parameters are used in place where the archive begins at a multiple of 64 bytes.
irc_error *irc_model_open_memory(const void *data,
                                 size_t bytes,
                                 const irc_open_options *options,
                                 irc_model **model);

// Frees a model; null is ignored. Its contexts remain usable.
void irc_model_free(irc_model *model);

// Number of inputs; 0 for null.
size_t irc_model_input_count(const irc_model *model);

// Number of outputs; 0 for null.
size_t irc_model_output_count(const irc_model *model);

// Describes an input.
irc_error *irc_model_input(const irc_model *model, size_t index, irc_port *port);

// Describes an output.
irc_error *irc_model_output(const irc_model *model, size_t index, irc_port *port);

// The input in whose memory an output may be: the output has its elements, of which some are replaced. If both are bound
// to the same memory, a run writes only these. `SIZE_MAX` if there is no such input, and for null.
size_t irc_model_output_updates(const irc_model *model,
                                size_t index);

// Finds an input by name.
irc_error *irc_model_find_input(const irc_model *model, const char *name, size_t *index);

// Finds an output by name.
irc_error *irc_model_find_output(const irc_model *model, const char *name, size_t *index);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* IRC_RUNTIME_H */
