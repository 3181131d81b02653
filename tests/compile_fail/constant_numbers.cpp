// build error: \[constant\] expects several values in braces: constant\({1.f, 2.f, 3.f}\)
// got: takes<constant,int,int,int>
#include <deft/expr.hpp>
using namespace deft;
auto y = constant(1, 2, 3);
