// builds
// Macros of windef.h, complex.h and test frameworks.
#define near
#define far
#define check(x) x
#define I 1.0i
#include <deft/expr.hpp>
deft::tensor<float, 2> f(const deft::tensor<float, 3>& x) {
  return deft::gather(x, deft::constant({0, 2}));
}
