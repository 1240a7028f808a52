// The functions by name, for clients without a dynamic loader.
llvm.mlir.global internal constant @irc_registry() : !llvm.struct<(ptr, ptr)> {
  %names = llvm.mlir.addressof @irc_names : !llvm.ptr
  %functions = llvm.mlir.addressof @irc_functions : !llvm.ptr
  %0 = llvm.mlir.undef : !llvm.struct<(ptr, ptr)>
  %1 = llvm.insertvalue %names, %0[0] : !llvm.struct<(ptr, ptr)>
  %2 = llvm.insertvalue %functions, %1[1] : !llvm.struct<(ptr, ptr)>
  llvm.return %2 : !llvm.struct<(ptr, ptr)>
}
llvm.mlir.global internal constant @irc_module() : !llvm.struct<(ptr)> {
  %registry = llvm.mlir.addressof @irc_registry : !llvm.ptr
  %0 = llvm.mlir.undef : !llvm.struct<(ptr)>
  %1 = llvm.insertvalue %registry, %0[0] : !llvm.struct<(ptr)>
  llvm.return %1 : !llvm.struct<(ptr)>
}
llvm.func @TVMSystemLibEntryPoint() -> !llvm.ptr {
  %module = llvm.mlir.addressof @irc_module : !llvm.ptr
  llvm.return %module : !llvm.ptr
}
