// build error: \[avg_pool\] expects float or double, and got another dtype
// got: takes<avg_pool,tensor<unsignedchar,-1,28,28,1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::uint8_t, dyn, 28, 28, 1> x("x");
auto y = avg_pool(x, window<2>);
