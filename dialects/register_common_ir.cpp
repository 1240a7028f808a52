// The common_ir dialect that mlir-tblgen generated; register.cpp registers it.
#include "RustVerified.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/CAPI/Registration.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

#include "CommonIrDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "CommonIrTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "CommonIrAttrs.h.inc"
#define GET_OP_CLASSES
#include "CommonIrOps.h.inc"

#include "CommonIrDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "CommonIrTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "CommonIrAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "CommonIrOps.cpp.inc"

void irc::common_ir::CommonIrDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "CommonIrTypes.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "CommonIrAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "CommonIrOps.cpp.inc"
      >();
}
