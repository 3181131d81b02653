// build error: \[categorical\] expects floating logits along a last axis
// got: takes<categorical,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 3> x("x");
auto y = categorical(x);
