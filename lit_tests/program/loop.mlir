// A loop's state is in two memories in turn; a sequence of known length is written in place.
// RUN: %irc-opt --plan-memory %s | FileCheck %s

// CHECK-LABEL: func.func @irc_main(
// CHECK: scf.while (%[[I:.*]] = %{{.*}}, %{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[NOW:.*]] = %{{.*}}, %[[NEXT:.*]] = %{{.*}}, %[[THEN:.*]] = %{{.*}})
// CHECK: scf.condition
// CHECK: ^bb0(%[[I:.*]]: index, %{{.*}}: i1, %{{.*}}: i32, %[[NOW:.*]]: memref<1xi8>, %[[NEXT:.*]]: memref<1xi8>, %[[THEN:.*]]: memref<1xi8>):
// CHECK: %[[BY:.*]] = arith.muli %[[I]]
// CHECK: func.call @irc_main_0
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %[[NEXT]], %[[THEN]], %[[NEXT]]
// CHECK: memref.copy
func.func @main(%trips: tensor<i64>, %go: tensor<i1>, %s: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<3x4xf32>) attributes {tl.graph} {
  %last, %all = tl.loop (%trips, %go, %s) {body = @main_0, carried = 1 : i64}
      : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>)
  return %last, %all : tensor<4xf32>, tensor<3x4xf32>
}
func.func private @main_0(%i: tensor<i64>, %s: tensor<4xf32>)
    -> (tensor<i1>, tensor<4xf32>, tensor<4xf32>) attributes {tl.graph} {
  %go = tl.constant {bytes = array<i8: 1>} : tensor<i1>
  %n = tl.launch @kernel(%s) : (tensor<4xf32>) -> tensor<4xf32>
  return %go, %n, %n : tensor<i1>, tensor<4xf32>, tensor<4xf32>
}
func.func private @kernel(memref<4xf32>, memref<4xf32>, memref<0xi8>) attributes {tl.kernel = #tl.kernel}
