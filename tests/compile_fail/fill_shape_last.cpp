// build error: \[fill\] expects a shape and then a value: fill\(shape<2, 3>, 0.5f\)
// got: takes<fill,float,shape_t<2,3>>
#include <deft/expr.hpp>
using namespace deft;
auto y = fill(0.5f, shape<2, 3>);
