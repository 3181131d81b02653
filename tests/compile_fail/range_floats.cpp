// build error: \[range\] expects two integers as bounds
// got: takes<range,int,double>
#include <deft/expr.hpp>
using namespace deft;
auto y = range(0, 2.5);
