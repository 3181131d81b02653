// build error: \[softmax_cross_entropy\] expects labels of the logits' dtype
// got: takes<softmax_cross_entropy,tensor<float,-1,10>,tensor<double,-1,10>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
placeholder<double, dyn, 10> y("y");
auto z = softmax_cross_entropy(x, y);
