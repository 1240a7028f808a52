// buffer 1 = exp(buffer 0); buffer 2 = buffer 1 * 0.5, as an importer writes it.
ark.model attributes {rank = 0 : i64, world_size = 1 : i64} {
  %b0 = ark.buffer {id = 0 : i64, rank = -1 : i64, send_tags = array<i64>, recv_tags = array<i64>} : !ark.buffer
  %t0 = ark.tensor %b0 {id = 0 : i64} : !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>
  %b1 = ark.buffer {id = 1 : i64, rank = -1 : i64, send_tags = array<i64>, recv_tags = array<i64>} : !ark.buffer
  %t1 = ark.tensor %b1 {id = 1 : i64} : !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>
  %0 = "ark.exp"(%t0, %t1, %b1) <{consumers = array<i64: 1>, node = 0 : i64, op_name = "exp", operandSegmentSizes = array<i32: 1, 1, 1>, producers = array<i64>, result_ids = array<i64: 2>}> : (!ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>, !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>, !ark.buffer) -> !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]> loc("$.Nodes[0].Op"("scaled_exp.model.json":5:5))
  %b2 = ark.buffer {id = 2 : i64, rank = -1 : i64, send_tags = array<i64>, recv_tags = array<i64>} : !ark.buffer
  %t3 = ark.tensor %b2 {id = 3 : i64} : !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>
  %1 = "ark.scalar_mul"(%0, %t3, %b2) <{consumers = array<i64>, factor = 5.000000e-01 : f32, node = 1 : i64, op_name = "mul", operandSegmentSizes = array<i32: 1, 1, 1>, producers = array<i64: 0>, result_ids = array<i64: 4>}> : (!ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>, !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]>, !ark.buffer) -> !ark.tensor<f32, [4, 8], strides[4, 8], offsets[0, 0], padded[4, 8]> loc("$.Nodes[1].Op"("scaled_exp.model.json":30:5))
}
