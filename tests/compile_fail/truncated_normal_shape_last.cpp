// build error: \[truncated_normal\] expects a shape first,.*truncated_normal\(shape<2, 3>, 0.1f\)
// got: takes<truncated_normal,float,shape_t<2,3>>
#include <deft/expr.hpp>
using namespace deft;
auto y = truncated_normal(0.1f, shape<2, 3>);
