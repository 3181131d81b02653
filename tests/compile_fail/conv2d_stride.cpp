// build error: \[conv2d\] expects a stride of 1 or more, and got another
// got: takes<conv2d,stride_t<0,0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
placeholder<float, 5, 5, 1, 32> w("w");
auto y = conv2d(x, w, stride<0>, padding::same);
