// build error: \[dense\] expects its activation among the options
// got: takes<dense,tensor<float,-1,3>,activation_function>
#include <deft/op/relu.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 3>& x) { return dense<64>(x, "h", relu); }
