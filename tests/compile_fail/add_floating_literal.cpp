// build error: a floating literal needs a floating tensor
// got: takes<add,tensor<int,3>,double>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto z = x + 0.5;
