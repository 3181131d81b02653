// build error: \[tensor\] an any_tensor's dtype and shape are known only at run time: tensor<T,
// got: takes<tensor<float,3>,any_tensor>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
tensor<float, 3> g(tensor<float, 3> t);
any_tensor a = x;
auto y = g(a);
