// build error: \[adagrad\] expects a learning rate, and the first value of its accumulator: adagrad\(0.1\)
// got: takes<adagrad>
#include <deft/deft.hpp>
using namespace deft;
auto o = adagrad();
