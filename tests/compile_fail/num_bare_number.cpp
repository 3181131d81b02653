// build error: \[num\] a body computes with deft's value types, not with a bare number
// several errors
#include <deft/expr.hpp>
auto y = deft::ext::num::exp(1.f);
