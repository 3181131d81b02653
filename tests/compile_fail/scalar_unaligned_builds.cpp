// builds
// flags: -DEIGEN_MAX_ALIGN_BYTES=0
#include <deft/deft.hpp>
deft::tensor<double, 3> f(const deft::tensor<double, 3>& x) { return exp(x) * 2; }
