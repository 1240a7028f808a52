// Sizes that depend on symbols: extents are read and checked, slots requested, kernels given sizes.
// RUN: %irc-opt --plan-memory %s | FileCheck %s

// CHECK-LABEL: func.func @irc_main(%arg0: memref<1xi8>, %arg1: memref<1xi8>, %arg2: memref<3xi64>, %arg3: memref<1xi8>) -> i32
// CHECK: %[[N:.*]] = arith.index_cast
// CHECK: %[[M:.*]] = arith.index_cast
// CHECK: %[[OTHER:.*]] = arith.index_cast
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[OTHER]], %[[N]]
// CHECK: cf.cond_br %[[SAME]]
// CHECK: %[[BLOCK:.*]] = call @irc_host_allocate(%arg3,
// CHECK: %[[SLOT:.*]] = memref.view %[[BLOCK]]
// CHECK: call @kernel(%{{.*}}, %[[N]], %[[SLOT]]
// CHECK: call @irc_host_output(%arg3,
// CHECK: call @kernel(
// CHECK: call @irc_host_release(%arg3, %[[BLOCK]])
// CHECK: call @irc_host_fail(%arg3,
func.func @main(
    %x: tensor<?xf32, #tl.dims<"N">>,
    %y: tensor<?x?xf32, #tl.dims<"M", "N">>) -> tensor<?xf32, #tl.dims<"N">> attributes {tl.graph} {
  %a = tl.launch @kernel(%x) : (tensor<?xf32, #tl.dims<"N">>) -> tensor<?xf32, #tl.dims<"N">>
  %b = tl.launch @kernel(%a) : (tensor<?xf32, #tl.dims<"N">>) -> tensor<?xf32, #tl.dims<"N">>
  return %b : tensor<?xf32, #tl.dims<"N">>
}
func.func private @kernel(memref<1xf32>, index, memref<1xf32>, memref<0xi8>)
    attributes {tl.kernel = #tl.kernel<symbols = ["N"], workspace_bytes = 0>}
