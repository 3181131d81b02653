// build error: \[prepare\] expects tensors, expressions, operations, and feeds\(x, y\)
#include <deft/deft.hpp>
using namespace deft;
auto f(session& s, const placeholder<float>& x) { return s.prepare(x * 2, x = 3.f); }
