// build error: element types are float, double, std::int32_t, std::int64_t, std::uint8_t and bool;
// got: is_element_type<unsigned>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<unsigned, 3> t("t");
