/* The graph of tests/support: data through two layers, then split. No header of TVM is needed.
 *
 * Each function is there by the packed C interface, and for tvm-ffi. Workspace comes from the loader
 * where it fills the slots, else from malloc. REGISTRY_U16 is for TVM from version 0.10 on.
 */
#include <stdint.h>
#include <stdlib.h>

typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } Type;
typedef struct {
  void *data;
  Device device;
  int32_t rank;
  Type type;
  int64_t *shape, *strides;
  uint64_t offset;
} Tensor;
typedef union { int64_t integer; double number; void *handle; } Value;
typedef struct { int32_t type_index; uint32_t zero; void *handle; } Any;
typedef int32_t (*Function)(Value *, int32_t *, int32_t, Value *, int32_t *, void *);

__attribute__((weak)) void *(*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = 0;
__attribute__((weak)) int (*__TVMBackendFreeWorkspace)(int, int, void *) = 0;
__attribute__((weak)) void (*__TVMAPISetLastError)(const char *) = 0;

static int32_t fail(const char *message) {
  if (__TVMAPISetLastError) __TVMAPISetLastError(message);
  return -1;
}

/* Type codes of handles, of DLTensor pointers and of arrays. */
static int are_tensors(const int32_t *codes, int32_t count, int32_t wanted) {
  if (count != wanted) return 0;
  for (int32_t i = 0; i < count; ++i)
    if (codes[i] != 3 && codes[i] != 7 && codes[i] != 13) return 0;
  return 1;
}

static float *data(Value value) {
  Tensor *tensor = value.handle;
  return (float *)((char *)tensor->data + tensor->offset);
}

static float scaled(float x) { return 0.5f * x; }

int32_t tvmgen_default_scale(Value *a, int32_t *codes, int32_t n, Value *r, int32_t *c, void *h) {
  (void)r, (void)c, (void)h;
  if (!are_tensors(codes, n, 2)) return fail("scale takes two tensors");
  const float *x = data(a[0]);
  float *y = data(a[1]);
  for (int i = 0; i < 8; ++i) y[i] = scaled(x[i]);
  return 0;
}

int32_t tvmgen_default_dense(Value *a, int32_t *codes, int32_t n, Value *r, int32_t *c, void *h) {
  (void)r, (void)c, (void)h;
  if (!are_tensors(codes, n, 4)) return fail("dense takes four tensors");
  const float *x = data(a[0]), *w = data(a[1]), *b = data(a[2]);
  float *y = data(a[3]);
  int is_lent = __TVMBackendAllocWorkspace && __TVMBackendFreeWorkspace;
  float *products = is_lent ? __TVMBackendAllocWorkspace(1, 0, 32, 2, 32) : malloc(32);
  if (!products) return fail("no workspace");
  for (int o = 0; o < 16; ++o) {
    for (int k = 0; k < 8; ++k) products[k] = x[k] * w[o * 8 + k];
    y[o] = b[o];
    for (int k = 0; k < 8; ++k) y[o] += products[k];
  }
  if (is_lent) return __TVMBackendFreeWorkspace(1, 0, products);
  free(products);
  return 0;
}

int32_t tvmgen_default_relu(Value *a, int32_t *codes, int32_t n, Value *r, int32_t *c, void *h) {
  (void)r, (void)c, (void)h;
  if (!are_tensors(codes, n, 2)) return fail("relu takes two tensors");
  const float *x = data(a[0]);
  float *y = data(a[1]);
  for (int i = 0; i < 16; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  return 0;
}

int32_t tvmgen_default_split(Value *a, int32_t *codes, int32_t n, Value *r, int32_t *c, void *h) {
  (void)r, (void)c, (void)h;
  if (!are_tensors(codes, n, 3)) return fail("split takes three tensors");
  const float *x = data(a[0]);
  float *low = data(a[1]), *high = data(a[2]);
  for (int i = 0; i < 4; ++i) low[i] = x[i];
  for (int i = 0; i < 12; ++i) high[i] = x[4 + i];
  return 0;
}

/* A DLTensor pointer, or an object that holds the tensor after its head of 24 bytes. */
static int32_t from_ffi(Function function, const Any *args, int32_t n) {
  Value values[4], result;
  int32_t codes[4], code = 4;
  if (n > 4) return -1;
  for (int32_t i = 0; i < n; ++i) {
    if (args[i].type_index != 7 && args[i].type_index < 64) return -1;
    values[i].handle = (char *)args[i].handle + (args[i].type_index == 7 ? 0 : 24);
    codes[i] = 7;
  }
  return function(values, codes, n, &result, &code, 0);
}

int32_t __tvm_ffi_tvmgen_default_scale(void *self, const Any *args, int32_t n, Any *result) {
  (void)self, (void)result;
  return from_ffi(tvmgen_default_scale, args, n);
}

int32_t __tvm_ffi_tvmgen_default_dense(void *self, const Any *args, int32_t n, Any *result) {
  (void)self, (void)result;
  return from_ffi(tvmgen_default_dense, args, n);
}

int32_t __tvm_ffi_tvmgen_default_relu(void *self, const Any *args, int32_t n, Any *result) {
  (void)self, (void)result;
  return from_ffi(tvmgen_default_relu, args, n);
}

int32_t __tvm_ffi_tvmgen_default_split(void *self, const Any *args, int32_t n, Any *result) {
  (void)self, (void)result;
  return from_ffi(tvmgen_default_split, args, n);
}

typedef struct { const char *names; const Function *functions; } Registry;
typedef struct { const Registry *registry; } Module;

static const Function functions[] = {tvmgen_default_scale, tvmgen_default_dense,
                                     tvmgen_default_relu, tvmgen_default_split};
#ifdef REGISTRY_U16
#define COUNT "\4\0"
#else
#define COUNT "\4"
#endif
static const Registry registry = {COUNT "tvmgen_default_scale\0" "tvmgen_default_dense\0"
                                        "tvmgen_default_relu\0" "tvmgen_default_split\0", functions};
static const Module module = {&registry};

const Module *TVMSystemLibEntryPoint(void) { return &module; }
