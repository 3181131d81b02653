// build error: \[elementwise\] the operation expects float or double: use cast<float>\(x\)
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto z = exp(x);
