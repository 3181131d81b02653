// build error: \[slice\] expects a size of each axis within the tensor's extents, and got others
// got: takes<slice,tensor<float,-1,10>,shape_t<2,11>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 10> x("x");
auto y = slice(x, {size_of(x, axis<0>) - 2, 0}, shape<2, 11>);
