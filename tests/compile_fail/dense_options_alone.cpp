// build error: \[dense\] expects units and a name, or.*dense<10>\(x, "fc"\)
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dense<64>(x, {.activation = relu});
