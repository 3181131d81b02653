// build error: \[range\] expects two integers as bounds: range\(2, all\) is from index 2 on
// got: takes<range,int>
#include <deft/expr.hpp>
using namespace deft;
auto y = range(3);
