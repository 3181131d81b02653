// build error: \[run\] expects tensors, expressions, operations and feeds
#include <deft/deft.hpp>
using namespace deft;
session s;
auto v = s.run(42);
