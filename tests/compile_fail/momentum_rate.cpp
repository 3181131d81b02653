// build error: \[momentum\] expects a learning rate and a momentum, and options: momentum\(0.01,
// got: takes<momentum,double>
#include <deft/deft.hpp>
using namespace deft;
momentum o(0.9);
