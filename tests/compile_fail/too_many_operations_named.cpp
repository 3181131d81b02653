// builds
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
tensor<float> a = x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x +
                  x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x +
                  x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x + x +
                  x + x + x + x + x;
auto y = a + x;
