// build error: \[tensor\] expects an expression, and got a number: constant\(0.5f\) is a tensor
// got: takes<tensor<float>,int>
#include <deft/expr.hpp>
using namespace deft;
tensor<float> zero = 0;
