// build error: \[gather\] expects a tensor of.*gather\(x, i\), gather\(x, constant\({0, 2}\)\)
// got: takes<gather,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = gather(x, {0, 2});
