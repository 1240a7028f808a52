/* A library as irc compile writes it: y = x + 1, through the workspace. */
#include <stdint.h>
const char irc_metadata[] =
    "{\"inputs\":[{\"name\":\"x\",\"dtype\":\"f32\",\"shape\":[2,3]}],"
    "\"outputs\":[{\"name\":\"y\",\"dtype\":\"f32\",\"shape\":[2,3]}],"
    "\"workspace_bytes\":24,\"requires\":[]}";
int32_t irc_run(void **buffers, void *workspace) {
  float *x = buffers[0], *y = buffers[1], *scratch = workspace;
  for (int i = 0; i < 6; ++i) scratch[i] = x[i] + 1;
  for (int i = 0; i < 6; ++i) y[i] = scratch[i];
  return x[0] == -1 ? 3 : 0;
}
