// build error: \[max_pool\] expects images \(batch, height, width, channels\), and got another rank
// got: takes<max_pool,tensor<float,-1,784>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 784> x("x");
auto y = max_pool(x, window<2>);
