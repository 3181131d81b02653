// build error: \[sgd\] expects a learning rate alone: .*; momentum\(0.1, 0.9\) has momentum
// got: takes<sgd,double,double>
#include <deft/deft.hpp>
using namespace deft;
sgd o(0.1, 0.9);
