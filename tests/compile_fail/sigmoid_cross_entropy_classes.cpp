// build error: \[sigmoid_cross_entropy\] expects operands of one dtype, and got several: use
// cast<T>\(x\) got: takes<sigmoid_cross_entropy,tensor<float,3>,tensor<int,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<std::int32_t, 3> z("z");
auto y = sigmoid_cross_entropy(x, z);
