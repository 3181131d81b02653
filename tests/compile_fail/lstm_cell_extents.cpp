// build error: \[lstm_cell\] expects x of \(batch,inputs\), a state of \(batch,units\), a kernel of
// got: takes<lstm_cell,tensor<float,-1,8>,tensor<float,-1,16>,tensor<float,-1,16>
#include <deft/expr.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
placeholder<float, dyn, 8> x("x");
placeholder<float, dyn, 16> c("c"), h("h");
placeholder<float, 24, 48> kernel("kernel");
placeholder<float, 64> bias("bias");
auto next = lstm_cell(x, lstm_state{c, h}, kernel, bias);
