// build error: \[run\] expects each feed as an argument, .*, and got braces around it
// got: takes<session,placeholder<float,-1,3>,feed_dictionary>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
placeholder<float> k("k");
void f(session& s) { s.run(x, {k = 1.f}); }
