// build error: \[ftrl\] expects a learning rate and options: ftrl\(0.1, {.l1 = 0.1, .l2 = 0.1}\)
// got: takes<ftrl,double,double>
#include <deft/deft.hpp>
using namespace deft;
ftrl o(0.1, 0.01);
