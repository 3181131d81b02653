// build error: \[feeds\] expects the tensors that a prepared step is given values for
// got: takes<feed_list<>,feed_value>
#include <deft/deft.hpp>
using namespace deft;
auto f(const placeholder<float>& x) { return feeds(x = 3.f); }
