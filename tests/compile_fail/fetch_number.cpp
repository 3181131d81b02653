// build error: \[run\] expects tensors, expressions, operations and feeds
// got: takes<session,int>
#include <deft/deft.hpp>
using namespace deft;
session s;
auto v = s.run(42);
