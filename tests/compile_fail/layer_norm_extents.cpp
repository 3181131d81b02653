// build error: \[layer_norm\] expects a floating tensor, and a scale and an offset as long as its
// got: takes<layer_norm,tensor<float,-1,4>,tensor<float,4>,tensor<float,5>>
#include <deft/expr.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
placeholder<float, dyn, 4> x("x");
placeholder<float, 4> scale("scale");
placeholder<float, 5> offset("offset");
auto y = layer_norm(x, scale, offset);
