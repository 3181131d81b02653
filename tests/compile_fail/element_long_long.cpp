// build error: element types are float, double, std::int32_t, std::int64_t, std::uint8_t and bool;
// got: is_element_type<longlong>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
tensor<long long, 3> t;
