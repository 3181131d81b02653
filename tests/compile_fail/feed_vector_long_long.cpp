// build error: \[feed\] element types are float.*for long long use std::int64_t
// got: takes<tensor<long,-1>,vector<longlong
#include <deft/expr.hpp>
using namespace deft;
#include <vector>
placeholder<std::int64_t, dyn> x("x");
auto f(const std::vector<long long>& v) { return x = v; }
