// build error: \[unroll\] expects a sequence of \(batch,steps,inputs\) whose number of steps is
// got: takes<unroll,tensor<float,4,-1,8>,tensor<float,4,16>>
#include <deft/expr.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
placeholder<float, 4, dyn, 8> x("x");
placeholder<float, 4, 16> h("h");
auto all = unroll(x, h, [](const auto&, const auto& state) { return state; });
