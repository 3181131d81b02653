// build error: \[clip_by_value\] expects a.*clip_by_value\(x, 0, 1\); one limit alone is
// got: takes<clip_by_value,tensor<float,-1,3>,int>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = clip_by_value(x, 0);
