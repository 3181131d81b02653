// build error: \[dense\] expects a name, and its activation among the options
// got: takes<dense,tensor<float,-1,3>,long>
#include <deft/op/relu.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 3>& x) { return dense(x, 64, relu); }
