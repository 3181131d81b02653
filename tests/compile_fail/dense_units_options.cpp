// build error: \[dense\] expects units and a name, or.*dense\(x, 10, "fc"\)
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = dense(x, 64, {.activation = relu});
