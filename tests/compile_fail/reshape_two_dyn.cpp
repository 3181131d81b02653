// build error: \[reshape\] expects one dyn extent at most, and got several
// got: takes<reshape,tensor<float,3,4>,shape_t<-1,-1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
auto y = reshape(x, shape<dyn, dyn>);
