// build error: \[reshape\] expects a shape of as many elements as there are, and got another
// got: takes<reshape,tensor<float,3,4>,shape_t<5,-1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
auto y = reshape(x, shape<5, dyn>);
