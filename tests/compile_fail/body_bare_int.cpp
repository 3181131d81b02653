// build error: no match.* for call to .*deft::op::mul
#include <deft/expr.hpp>
auto y = deft::op::mul()(2, 3);
