// build error: \[reshape\] expects a shape of as many elements as there are, and got another
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
auto y = reshape(x, shape<5, dyn>);
