// build error: a floating literal needs a floating tensor
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto z = x + 0.5;
