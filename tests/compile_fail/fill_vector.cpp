// build error: \[fill\] expects a scalar, and got another tensor: use broadcast_to\(x, shape\)
// got: takes<fill,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> v("v");
auto x = fill(shape<2, 3>, v);
