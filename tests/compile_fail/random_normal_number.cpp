// build error: \[random_normal\] expects a shape first,.*random_normal\(shape<2, 3>, 0.f, 0.1f\)
// got: takes<random_normal,int>
#include <deft/expr.hpp>
using namespace deft;
auto y = random_normal(10);
