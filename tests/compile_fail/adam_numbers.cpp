// build error: \[adam\] expects a learning rate and options: adam\(0.001, {.beta1 = 0.9, .beta2 =
// got: takes<adam,double,double,double>
#include <deft/deft.hpp>
using namespace deft;
adam o(0.001, 0.9, 0.999);
