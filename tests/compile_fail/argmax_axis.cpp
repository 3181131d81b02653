// build error: \[argmax\] expects an axis within the tensor's rank, and got another
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = argmax(x, axis<1>);
