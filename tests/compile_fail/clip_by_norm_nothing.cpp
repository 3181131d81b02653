// build error: \[clip_by_norm\] expects the largest norm, as in clip_by_norm\(x, 1\)
// got: takes<clip_by_norm,tensor<float,-1,3>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = clip_by_norm(x);
