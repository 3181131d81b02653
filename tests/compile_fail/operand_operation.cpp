// build error: expects tensors, and got an operation, which yields no value
// got: takes<add,tensor<float>,operation>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
auto z = x + no_op();
