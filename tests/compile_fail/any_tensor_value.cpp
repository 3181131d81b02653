// build error: \[any_tensor\] expects an expression, and got a value: feed\(x, value\) feeds it
// got: takes<any_tensor,vector<float
#include <deft/expr.hpp>
using namespace deft;
any_tensor x = make_placeholder("x", dtype::float32, {dyn});
const std::vector<float> elements{1, 2};
void f() { x = elements; }
