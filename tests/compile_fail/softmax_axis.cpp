// build error: \[softmax\] expects an axis within the tensor's rank, and got another
// got: takes<softmax,tensor<float,3>,axis_t<1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = softmax(x, axis<1>);
