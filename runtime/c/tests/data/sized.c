/* A library whose sizes depend on its inputs: y = the first half of x. */
#include <stdint.h>
struct irc_host {
  void *(*allocate)(void *host, int64_t bytes);
  void (*release)(void *host, void *block);
  void *(*output)(void *host, int64_t number, const int64_t *extents);
  void (*fail)(void *host, int64_t check, int64_t left, int64_t right);
};
const char irc_metadata[] =
    "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"i32\",\"shape\":[-1],\"sizes\":[\"N\"]}],"
    "\"outputs\":[{\"name\":\"y\",\"dtype\":\"i32\",\"shape\":[-1],\"sizes\":[\"N/2\"]}],"
    "\"workspace_bytes\":0,\"convention\":1,\"checks\":[\"N must be even\"]}";
int32_t irc_run_sized(struct irc_host *host, void **inputs, const int64_t *extents) {
  int64_t half = extents[0] / 2;
  if (extents[0] % 2) return host->fail(host, 0, extents[0], 2 * half), 1;
  int32_t *x = inputs[0], *y = host->output(host, 0, &half), *block = host->allocate(host, half * 4);
  for (int64_t i = 0; i < half; ++i) block[i] = x[i];
  for (int64_t i = 0; i < half; ++i) y[i] = block[i];
  host->release(host, block);
  return 0;
}
