// The bridge between Rust and the parts of MLIR that have no C API: passes registered by name with
// typed options, op verifiers in Rust, and the mains of mlir-opt and mlir-lsp-server.
// Compiled with clang++ of the same LLVM release: trait ids are keyed by compiler spelling.
#include "RustVerified.h"

#include "mlir-c/Pass.h"
#include "mlir/CAPI/Pass.h"
#include "mlir/CAPI/Wrap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"

#include <mutex>

using namespace mlir;

namespace {
StringRef view(MlirStringRef s) { return StringRef(s.data, s.length); }
} // namespace

extern "C" {
typedef MlirLogicalResult (*IrcVerify)(MlirOperation);
static IrcVerify rustVerifier = nullptr;

void ircSetVerifier(IrcVerify verifier) { rustVerifier = verifier; }
MlirLogicalResult ircVerifyOp(MlirOperation op) {
  return rustVerifier ? rustVerifier(op) : wrap(success());
}

// "'tl.add' op MESSAGE", located at the op.
void ircEmitOpError(MlirOperation op, MlirStringRef message) {
  unwrap(op)->emitOpError(view(message));
}
void ircEmitOpWarning(MlirOperation op, MlirStringRef message) {
  unwrap(op)->emitWarning(view(message));
}
void ircEmitOpRemark(MlirOperation op, MlirStringRef message) {
  unwrap(op)->emitRemark(view(message));
}

// A ranked tensor in one call: for each extent the C API looks up an interface.
bool ircTensorParts(MlirType type, const int64_t **shape, size_t *rank, MlirType *element,
                    MlirAttribute *encoding) {
  auto tensor = dyn_cast<RankedTensorType>(unwrap(type));
  if (!tensor)
    return false;
  *shape = tensor.getShape().data();
  *rank = tensor.getShape().size();
  *element = wrap(tensor.getElementType());
  *encoding = wrap(tensor.getEncoding());
  return true;
}

// The bytes of dense elements (one element for a splat) or of a resource that is there.
bool ircElementsData(MlirAttribute attribute, const char **data, size_t *length) {
  Attribute attr = unwrap(attribute);
  ArrayRef<char> bytes;
  if (auto dense = dyn_cast<DenseIntOrFPElementsAttr>(attr)) {
    bytes = dense.getRawData();
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return false;
    bytes = blob->getData();
  } else {
    return false;
  }
  *data = bytes.data();
  *length = bytes.size();
  return true;
}

struct IrcPassOption {
  MlirStringRef name, help, value; // value: the default, as text
  int kind;                        // 0 string, 1 integer, 2 boolean
};
struct IrcPassDef {
  MlirStringRef argument, description, anchor; // anchor: an op name, or empty for any op
  const IrcPassOption *options;
  intptr_t optionCount;
  const MlirStringRef *dialects; // loaded before the pass runs
  intptr_t dialectCount;
  MlirLogicalResult (*run)(MlirOperation, const MlirStringRef *values, intptr_t count, void *user);
  void *user;
};
}

namespace {
// Dialects by name, with the type ids that a registry wants and only a loaded dialect tells.
class Scout {
public:
  void know(const DialectRegistry &registry) {
    std::lock_guard<std::mutex> lock(mutex);
    context.appendDialectRegistry(registry);
  }
  void insert(StringRef name, DialectRegistry &into) {
    std::lock_guard<std::mutex> lock(mutex);
    if (Dialect *dialect = context.getOrLoadDialect(name))
      into.insert(dialect->getTypeID(), name,
                  context.getDialectRegistry().getDialectAllocator(name));
  }
  static Scout &get() {
    static Scout *scout = new Scout; // outlives every pass
    return *scout;
  }

private:
  std::mutex mutex;
  MLIRContext context{MLIRContext::Threading::DISABLED};
};

struct OwnedOption {
  std::string name, help, value;
  int kind;
};
struct OwnedDef {
  std::string argument, description, anchor;
  std::vector<OwnedOption> options;
  std::vector<std::string> dialects;
  decltype(IrcPassDef::run) run;
  void *user;
};

class RustPass : public Pass {
public:
  explicit RustPass(std::shared_ptr<OwnedDef> def)
      : Pass(TypeID::getFromOpaquePointer(def.get()),
             def->anchor.empty() ? std::nullopt : std::optional<StringRef>(def->anchor)),
        def(std::move(def)) {
    declareOptions();
  }
  RustPass(const RustPass &other) : Pass(other), def(other.def) {
    declareOptions();
    copyOptionValuesFrom(&other);
  }
  StringRef getName() const override { return def->argument; }
  StringRef getArgument() const override { return def->argument; }
  StringRef getDescription() const override { return def->description; }
  bool canScheduleOn(RegisteredOperationName name) const override {
    return def->anchor.empty() || name.getStringRef() == def->anchor;
  }
  // A pipeline resolves the op names it nests on before its first pass runs, so dialects of created ops
  // must be loaded by then: otherwise `ark-to-tl,func.func(fuse)` silently skips `fuse`.
  void getDependentDialects(DialectRegistry &registry) const override {
    for (auto &name : def->dialects)
      Scout::get().insert(name, registry);
  }
  LogicalResult initialize(MLIRContext *context) override {
    for (auto &name : def->dialects)
      if (!context->getOrLoadDialect(name))
        return emitError(UnknownLoc::get(context), "pass '")
               << def->argument << "' needs dialect '" << name << "', which is not registered";
    return success();
  }
  void runOnOperation() override {
    std::vector<std::string> values;
    for (auto &read : readers)
      values.push_back(read());
    std::vector<MlirStringRef> refs;
    for (auto &value : values)
      refs.push_back({value.data(), value.size()});
    auto result = def->run(wrap(getOperation()), refs.data(), refs.size(), def->user);
    if (failed(unwrap(result)))
      signalPassFailure();
  }
  std::unique_ptr<Pass> clonePass() const override { return std::make_unique<RustPass>(*this); }

private:
  template <typename T> void declare(const OwnedOption &option, T value) {
    auto held = std::make_shared<Option<T>>(*this, StringRef(option.name),
                                            llvm::cl::desc(option.help), llvm::cl::init(value));
    readers.push_back([held] {
      if constexpr (std::is_same_v<T, std::string>)
        return held->getValue();
      else
        return std::to_string(held->getValue());
    });
  }
  void declareOptions() {
    for (auto &option : def->options) {
      if (option.kind == 1)
        declare<int64_t>(option, std::stoll(option.value));
      else if (option.kind == 2)
        declare<bool>(option, option.value == "1" || option.value == "true");
      else
        declare<std::string>(option, option.value);
    }
  }
  std::shared_ptr<OwnedDef> def;
  std::vector<std::function<std::string()>> readers;
};
} // namespace

extern "C" {
// Passes may ask for the dialects of this registry by name.
void ircKnowDialects(MlirDialectRegistry registry) { Scout::get().know(*unwrap(registry)); }

void ircRegisterPass(IrcPassDef raw) {
  auto def = std::make_shared<OwnedDef>();
  def->argument = view(raw.argument).str();
  def->description = view(raw.description).str();
  def->anchor = view(raw.anchor).str();
  for (intptr_t i = 0; i < raw.optionCount; ++i) {
    auto &option = raw.options[i];
    def->options.push_back({view(option.name).str(), view(option.help).str(),
                            view(option.value).str(), option.kind});
  }
  for (intptr_t i = 0; i < raw.dialectCount; ++i)
    def->dialects.push_back(view(raw.dialects[i]).str());
  def->run = raw.run;
  def->user = raw.user;
  registerPass([def]() -> std::unique_ptr<Pass> { return std::make_unique<RustPass>(def); });
}

// A textual pipeline registered under a name of its own.
void ircRegisterPipeline(MlirStringRef name, MlirStringRef description, MlirStringRef pipeline) {
  std::string text = view(pipeline).str();
  PassPipelineRegistration<>(view(name), view(description), [text](OpPassManager &pm) {
    (void)parsePassPipeline(text, pm);
  });
}

int ircOptMain(int argc, char **argv, MlirStringRef toolName, MlirDialectRegistry registry) {
  return asMainReturnCode(MlirOptMain(argc, argv, view(toolName), *unwrap(registry)));
}
int ircLspServerMain(int argc, char **argv, MlirDialectRegistry registry) {
  return asMainReturnCode(MlirLspServerMain(argc, argv, *unwrap(registry)));
}

void ircEnableCrashReproducer(MlirPassManager pm, MlirStringRef path, bool local) {
  unwrap(pm)->enableCrashReproducerGeneration(view(path), local);
}

// Instead of aborting the process, a fatal LLVM error reaches Rust, which must not return.
void ircInstallFatalHandler(void (*handler)(void *, const char *, bool)) {
  llvm::install_fatal_error_handler(handler);
  llvm::install_bad_alloc_error_handler(handler);
}
}
