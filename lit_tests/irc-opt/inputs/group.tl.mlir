// One fused group, as the stage `fuse` leaves it.
func.func @main(%x: tensor<4x8xf32> {tl.name = "x"}, %b: tensor<8xf32> {tl.name = "b"}) -> (tensor<4x8xf32> {tl.name = "y"}) {
  %0 = tl.group "elementwise"(%x, %b) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
  ^bb0(%p: tensor<4x8xf32>, %q: tensor<8xf32>):
    %s = tl.add %p, %q : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %e = tl.exp %s : tensor<4x8xf32>
    tl.yield %e : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}
