// build error: \[layer_norm\] expects a name, .*, or a scale and an offset
// got: takes<layer_norm,tensor<float,-1,3>,tensor<float,3>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
placeholder<float, 3> scale("scale");
auto y = layer_norm(x, scale);
