// build error: \[conv2d\] expects filters, or.*conv2d<32>\(x, window<5>, "conv1"\)
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = conv2d<8>(x, window<3>, {.activation = relu});
