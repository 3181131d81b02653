// build error: \[run\] expects what a function returns: call it, as in s.run\(initialize_all\(\)\)
#include <deft/deft.hpp>
using namespace deft;
void f(session& s) { s.run(initialize_all); }
