// An op trait whose verifier lives in Rust: `NativeOpTrait<"RustVerified">` in ODS.
#ifndef IRC_RUST_VERIFIED_H
#define IRC_RUST_VERIFIED_H

#include "mlir-c/IR.h"
#include "mlir/CAPI/IR.h"
#include "mlir/CAPI/Support.h"
#include "mlir/IR/OpDefinition.h"

// Calls the verifier that Rust registered for the op's dialect; defined in bridge.cpp.
extern "C" MlirLogicalResult ircVerifyOp(MlirOperation op);

namespace mlir::OpTrait {
template <typename ConcreteType>
struct RustVerified : public TraitBase<ConcreteType, RustVerified> {
  static LogicalResult verifyTrait(Operation *op) { return unwrap(ircVerifyOp(wrap(op))); }
};
} // namespace mlir::OpTrait

#endif
