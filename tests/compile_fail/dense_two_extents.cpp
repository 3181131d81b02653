// build error: \[dense\] expects units and a name, .*; the number of inputs is the last extent of x
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dense<3, 64>(x, "fc");
