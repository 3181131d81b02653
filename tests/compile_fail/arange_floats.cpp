// build error: \[arange\] expects a number of elements, and got a floating number
// got: takes<arange,double>
#include <deft/expr.hpp>
using namespace deft;
auto x = arange(2.5);
