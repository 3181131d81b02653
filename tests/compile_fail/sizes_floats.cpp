// build error: a shape or an index that a run computes is made of integer scalars, as size_of
// got: takes<extents,tensor<float>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> n("n");
auto x = zeros(shape<dyn>, {n});
