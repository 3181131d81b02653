// build error: \[linear_warmup\] expects the training step after the rate: linear_warmup\(0.1,
// got: takes<linear_warmup,double,int>
#include <deft/deft.hpp>
using namespace deft;
auto rate = linear_warmup(0.1, 1000);
