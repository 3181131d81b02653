// build error: \[subscript\] expects integers, integer scalars, ranges and all, and got another
// tensor got: takes<subscript,tensor<float,3>,tensor<int,2>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<std::int32_t, 2> i("i");
auto y = x(i);
