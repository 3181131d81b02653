// build error: \[run\] expects fetches one by one, and.*auto \[a, b\] = s.run\(x, y, k = 1\)
// got: takes<session>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
void f(session& s) { auto [y, z] = s.run({x, x}); }
