// What every irc dialect shares.
#ifndef IRC_BASE
#define IRC_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

// The op's verifier is the Rust function registered for its dialect.
def RustVerified : NativeOpTrait<"RustVerified">;

#endif
