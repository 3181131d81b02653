// build error: \[polynomial_decay\] expects the training step after the rate:
// got: takes<polynomial_decay,double,int>
#include <deft/deft.hpp>
using namespace deft;
auto rate = polynomial_decay(0.1, 1000);
