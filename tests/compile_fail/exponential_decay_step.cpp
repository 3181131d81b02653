// build error: \[exponential_decay\] expects the training step after the rate:
// got: takes<exponential_decay,double,int,double>
#include <deft/deft.hpp>
using namespace deft;
auto rate = exponential_decay(0.1, 1000, 0.96);
