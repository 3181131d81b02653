// build error: \[subscript\] expects indices and ranges within the tensor.s extents, and got others
// got: takes<subscript,tensor<float,-1,10>,
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto y = x(all, range<2, 11>);
