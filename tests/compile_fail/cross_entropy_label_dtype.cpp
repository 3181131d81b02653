// build error: \[softmax_cross_entropy\] expects classes as int32 or int64, or probabilities of
// got: takes<softmax_cross_entropy,tensor<float,-1,10>,tensor<float,-1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
placeholder<float, dyn> y("y");
auto z = softmax_cross_entropy(x, y);
