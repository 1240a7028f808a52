#include "../tvm_abi.h"
