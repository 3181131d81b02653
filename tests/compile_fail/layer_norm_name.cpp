// build error: \[layer_norm\] expects a name
// got: takes<layer_norm,tensor<float,-1,3>>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, 3>& x) { return layer_norm(x); }
