// build error: \[random_uniform\] expects a shape first,.*random_uniform\(shape<2, 3>, -1.f, 1.f\)
// got: takes<random_uniform,float,float,shape_t<2,3>>
#include <deft/expr.hpp>
using namespace deft;
auto y = random_uniform(-1.f, 1.f, shape<2, 3>);
