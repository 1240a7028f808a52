// Registers the dialects that mlir-tblgen generated from the .td files. One block per dialect;
// common_ir has a file of its own, since what mlir-tblgen writes for types and attributes is one to a
// file.
#include "RustVerified.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/CAPI/IR.h"
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

using namespace mlir;

#define GET_ATTRDEF_CLASSES
#include "TlAttrs.h.inc"

#include "ArkDialect.h.inc"
#include "CommonIrDialect.h.inc"
#include "GeminiDialect.h.inc"
#include "NpuDialect.h.inc"
#include "PlanDialect.h.inc"
#include "TlDialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "ArkTypes.h.inc"
#define GET_OP_CLASSES
#include "ArkOps.h.inc"
#define GET_OP_CLASSES
#include "GeminiOps.h.inc"
#define GET_OP_CLASSES
#include "NpuOps.h.inc"
#define GET_OP_CLASSES
#include "PlanOps.h.inc"
#define GET_OP_CLASSES
#include "TlOps.h.inc"

#include "ArkDialect.cpp.inc"
#include "GeminiDialect.cpp.inc"
#include "NpuDialect.cpp.inc"
#include "PlanDialect.cpp.inc"
#include "TlDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ArkTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "TlAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "ArkOps.cpp.inc"
#define GET_OP_CLASSES
#include "GeminiOps.cpp.inc"
#define GET_OP_CLASSES
#include "NpuOps.cpp.inc"
#define GET_OP_CLASSES
#include "PlanOps.cpp.inc"
#define GET_OP_CLASSES
#include "TlOps.cpp.inc"

void irc::ark::ArkDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ArkTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ArkOps.cpp.inc"
      >();
}

void irc::tl::TlDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "TlAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "TlOps.cpp.inc"
      >();
}

// An attribute `tl.NAME` is one of the dialect's discardable attributes, and of its type.
template <typename... Helper>
static LogicalResult verifyAttribute(Operation *op, NamedAttribute attribute, Helper... helper) {
  if (((attribute.getName() == helper.getName() &&
        isa<decltype(helper.getAttr(op))>(attribute.getValue())) ||
       ...))
    return success();
  return op->emitOpError() << "expected an attribute of tl as its definition says, found "
                           << attribute.getName() << " = " << attribute.getValue();
}

LogicalResult irc::tl::TlDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return verifyAttribute(op, attribute, getKernelAttrHelper(), getBlocksAttrHelper(),
                         getStridesAttrHelper(), getOverwritesAttrHelper(), getGraphAttrHelper(), getStringsAttrHelper(), getDescriptionAttrHelper(),
                         getAccessesAttrHelper(), getWorkersAttrHelper(), getCapabilityAttrHelper(),
                         getProgramAttrHelper(), getNameAttrHelper(), getPreservedAttrHelper(),
                         getUpdatesAttrHelper(),
                         getWeightAttrHelper(), getValueAttrHelper(), getOriginAttrHelper(),
                         getNonpositiveAttrHelper(), getAtLeastOneAttrHelper(), getIgnoresNanAttrHelper(), getOrderedAttrHelper(), getPadsAttrHelper(),
                         getQuadsAttrHelper(), getDotsAttrHelper(), getCodesAttrHelper(), getQuantisedAttrHelper(), getConstantsAttrHelper());
}

LogicalResult irc::tl::TlDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned,
                                                           NamedAttribute attribute) {
  return verifyOperationAttribute(op, attribute);
}

LogicalResult irc::tl::TlDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                                              NamedAttribute attribute) {
  return verifyOperationAttribute(op, attribute);
}

void irc::gemini::GeminiDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "GeminiOps.cpp.inc"
      >();
}

void irc::npu::NpuDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "NpuOps.cpp.inc"
      >();
}

void irc::plan::PlanDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "PlanOps.cpp.inc"
      >();
}

// The sizes of `#tl.dims`, for Rust. The count is -1 for another attribute.
extern "C" intptr_t ircDimsCount(MlirAttribute attribute) {
  auto dims = dyn_cast<irc::tl::DimsAttr>(unwrap(attribute));
  return dims ? static_cast<intptr_t>(dims.getSizes().size()) : -1;
}

extern "C" MlirStringRef ircDimsAt(MlirAttribute attribute, intptr_t index) {
  return wrap(cast<irc::tl::DimsAttr>(unwrap(attribute)).getSizes()[index].getValue());
}

extern "C" MlirAttribute ircDimsGet(MlirContext context, const MlirStringRef *sizes, intptr_t count) {
  SmallVector<StringAttr> texts;
  for (intptr_t index = 0; index < count; ++index)
    texts.push_back(StringAttr::get(unwrap(context), unwrap(sizes[index])));
  return wrap(irc::tl::DimsAttr::get(unwrap(context), texts));
}

extern "C" void ircRegisterDialects(MlirDialectRegistry registry) {
  unwrap(registry)
      ->insert<irc::ark::ArkDialect, irc::common_ir::CommonIrDialect, irc::gemini::GeminiDialect,
               irc::npu::NpuDialect, irc::tl::TlDialect, irc::plan::PlanDialect>();
}
