// build error: \[run\] expects fetches one by one, and.*; a std::vector of tensors is one, too
// got: takes<session,feed_value>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
placeholder<float> k("k");
void f(session& s) { s.run({x, x}, k = 1.f); }
