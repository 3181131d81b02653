// build error: \[run\] expects tensors, expressions, operations and feeds
// got: takes<session,call<add,leaf<float,shape_t<3>>,literal_leaf<float>>,char2>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
session s;
void f() { s.run(x + 1, "x"); }
