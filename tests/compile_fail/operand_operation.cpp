// build error: expects tensors, and got an operation, which yields no value
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
auto z = x + no_op();
