// build error: \[avg_pool\] expects a stride of 1 or more, and got another
// got: takes<avg_pool,stride_t<2,0>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 28, 28, 1> x("x");
auto y = avg_pool(x, window<2>, stride<2, 0>, padding::same);
