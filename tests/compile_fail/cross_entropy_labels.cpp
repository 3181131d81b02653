// build error: \[softmax_cross_entropy\] expects labels of the logits' shape, or a class per row
// got: takes<softmax_cross_entropy,tensor<float,-1,10>,tensor<float,-1,9>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
placeholder<float, dyn, 9> y("y");
auto z = softmax_cross_entropy(x, y);
