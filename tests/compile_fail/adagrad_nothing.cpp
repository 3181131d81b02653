// build error: \[adagrad\] expects a learning rate, and the first value of its accumulator:
// got: takes<adagrad>
#include <deft/deft.hpp>
using namespace deft;
auto o = adagrad();
