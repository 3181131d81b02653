// build error: \[batch_norm\] expects a name, as in batch_norm\(x, "norm"\)
// got: takes<batch_norm,tensor<float,-1,3>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = batch_norm(x);
