// build error: \[adamw\] expects a learning rate, a weight decay and options: adamw\(0.001, 0.01, {.beta1 = 0.9}\)
// got: takes<adamw,double,double,double>
#include <deft/deft.hpp>
using namespace deft;
adamw o(0.001, 0.01, 0.9);
