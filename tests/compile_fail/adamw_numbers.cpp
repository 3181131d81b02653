// build error: \[adamw\] expects a learning rate, a weight decay and options: adamw\(0.001, 0.01,
// got: takes<adamw,double,double,double>
#include <deft/deft.hpp>
using namespace deft;
adamw o(0.001, 0.01, 0.9);
