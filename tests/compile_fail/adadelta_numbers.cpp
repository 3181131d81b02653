// build error: \[adadelta\] expects a learning rate and options: adadelta\(1, {.rho = 0.95,
// got: takes<adadelta,int,double>
#include <deft/deft.hpp>
using namespace deft;
adadelta o(1, 0.95);
