// build error: \[prepare\] expects fetches one by one, .*s.prepare\(x, y, feeds\(k\)\)
// got: takes<session>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
void f(session& s) { auto step = s.prepare({x, x}); }
