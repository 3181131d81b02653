// build error: element types are float, double, .* for long long use std::int64_t
// got: is_element_type<longdouble>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<long double, 3> t("t");
