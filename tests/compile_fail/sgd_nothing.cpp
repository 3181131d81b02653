// build error: \[sgd\] expects a learning rate alone: sgd\(0.1\)
// got: takes<sgd>
#include <deft/deft.hpp>
using namespace deft;
auto o = sgd();
