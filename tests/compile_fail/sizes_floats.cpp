// build error: \[extents\] expects integer scalars, as size_of\(x, axis<0>\) is
// got: takes<extents,tensor<float>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> n("n");
auto x = zeros(shape<dyn>, {n});
