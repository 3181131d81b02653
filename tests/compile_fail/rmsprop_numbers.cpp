// build error: \[rmsprop\] expects a learning rate and options: rmsprop\(0.001, {.decay = 0.9,
// got: takes<rmsprop,double,double>
#include <deft/deft.hpp>
using namespace deft;
rmsprop o(0.001, 0.9);
