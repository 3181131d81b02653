// build error: \[dense\] expects its activation among the options, as in dense<10>\(x, "fc", {.activation = relu}\)
// got: takes<dense,tensor<float,-1,3>,activation_function>
#include <deft/op/relu.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 3>& x) { return dense<64>(x, "h", relu); }
