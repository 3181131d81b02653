// build error: \[dense\] expects a tensor whose last extent is known.*ensure_shape\(x, shape<dyn, N
// got: takes<dense,tensor<float,-1,-1>>
#include <deft/train/layers.hpp>
using namespace deft;
auto of(const tensor<float, dyn, dyn>& x) { return dense<5>(x, "fc"); }
