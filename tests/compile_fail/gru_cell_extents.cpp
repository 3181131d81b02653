// build error: \[gru_cell\] expects x of \(batch,inputs\), a state of \(batch,units\), gates of
// got: takes<gru_cell,tensor<float,-1,8>,tensor<float,-1,16>,tensor<float,24,32>,tensor<float,32>
#include <deft/expr.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
placeholder<float, dyn, 8> x("x");
placeholder<float, dyn, 16> h("h");
placeholder<float, 24, 32> gates("gates");
placeholder<float, 32> gates_bias("gates_bias");
placeholder<float, 23, 16> candidate("candidate");
placeholder<float, 16> bias("bias");
auto next = gru_cell(x, h, gates, gates_bias, candidate, bias);
