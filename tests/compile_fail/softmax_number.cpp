// build error: \[softmax\] expects an axis, and got a number: softmax\(x, axis<1>\)
// got: takes<softmax,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = softmax(x, 0);
