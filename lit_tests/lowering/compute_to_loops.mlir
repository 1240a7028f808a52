// RUN: %irc-opt %s --compute-to-loops --canonicalize --cse | FileCheck %s

// A condition guards the read behind it, and a size that depends on a symbol is an argument.
// CHECK-LABEL: func.func private @pad(
// CHECK-SAME:    %[[X:.*]]: memref<1xf32>, %[[N:.*]]: index, %[[OUT:.*]]: memref<1xf32> {llvm.noalias}, %{{.*}}: memref<0xi8>)
// CHECK-SAME:    symbols = ["N"]
// CHECK-SAME:    workspace_bytes = 0
func.func private @pad(%x: tensor<?xf32, #tl.dims<"N">>) -> tensor<?xf32, #tl.dims<"1 + N">> attributes {tl.kernel = #tl.kernel<kind = "loops">} {
  // CHECK: %[[MORE:.*]] = arith.addi %[[N]], %{{.*}} : index
  // CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[MORE]]
  // CHECK:   %[[INSIDE:.*]] = arith.cmpi sge
  // CHECK:   scf.if %[[INSIDE]]
  // CHECK:     memref.load %[[X]]
  // CHECK:   else
  // CHECK:   memref.store %{{.*}}, %[[OUT]][%[[I]]]
  %y = tl.compute(%x) "select(i0 >= 1, %0[i0 - 1], 0.0 : f32)" : (tensor<?xf32, #tl.dims<"N">>) -> tensor<?xf32, #tl.dims<"1 + N">>
  return %y : tensor<?xf32, #tl.dims<"1 + N">>
}

// What is read at the result's own index is one loop; a bool is a byte.
// CHECK-LABEL: func.func private @elements(
// CHECK-SAME:    memref<12xf32>, {{.*}} memref<12xi8>
func.func private @elements(%x: tensor<3x4xf32>) -> tensor<3x4xi1> attributes {tl.kernel = #tl.kernel<kind = "loops">} {
  // CHECK: scf.for
  // CHECK-NOT: scf.for
  // CHECK: arith.cmpf ogt
  // CHECK: arith.extui %{{.*}} : i1 to i8
  %y = tl.compute(%x) "%0[i0, i1] > 0.0 : f32" : (tensor<3x4xf32>) -> tensor<3x4xi1>
  return %y : tensor<3x4xi1>
}

// A sum of 16-bit floats is accumulated in f32 and rounded once.
// CHECK-LABEL: func.func private @sum(
func.func private @sum(%x: tensor<3x4xf16>) -> tensor<3xf16> attributes {tl.kernel = #tl.kernel<kind = "loops">} {
  // CHECK: scf.for {{.*}} iter_args({{.*}}) -> (f32)
  // CHECK:   arith.extf
  // CHECK:   arith.addf {{.*}} fastmath<reassoc,contract> : f32
  // CHECK: arith.truncf
  // CHECK: memref.store
  %y = tl.reduce_sum %x {axes = array<i64: 1>, keep_dims = false} : (tensor<3x4xf16>) -> tensor<3xf16>
  return %y : tensor<3xf16>
}
