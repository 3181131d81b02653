// build error: an elementwise expression of more than 64 operations: name an intermediate tensor
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
auto y = x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x +
         x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x +
         x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x;
