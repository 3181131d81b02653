// build error: no match.* for call to .*deft::op::add
#include <deft/expr.hpp>
auto y = deft::op::add()(1.f, 2.f);
