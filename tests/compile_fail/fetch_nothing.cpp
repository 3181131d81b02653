// build error: \[run\] expects something to fetch
// got: takes<session,feed_value>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
session s;
void f() { s.run(x = {1, 2, 3}); }
