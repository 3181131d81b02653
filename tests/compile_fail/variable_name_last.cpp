// build error: \[variable\] expects a name before the initial value, as in variable<float> b\("b",
// got: takes<variable<float,3,2>,initializer,char2>
#include <deft/deft.hpp>
using namespace deft;
variable<float, 3, 2> v(zeros(), "v");
