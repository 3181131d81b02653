// build error: element types are float, double, .* for long long use std::int64_t
// got: is_element_type<longlong>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
tensor<long long, 3> t;
