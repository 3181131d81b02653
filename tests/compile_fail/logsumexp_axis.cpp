// build error: \[logsumexp\] expects axes within the tensor's rank, each once
// got: takes<logsumexp,tensor<float,2,3>,axis_t<2>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = logsumexp(x, axis<2>);
