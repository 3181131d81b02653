// builds
// flags: -DEIGEN_DONT_VECTORIZE
#include <deft/deft.hpp>
deft::tensor<double, 3> f(const deft::tensor<double, 3>& x) { return exp(x) * 2; }
