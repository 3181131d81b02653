// build error: the list has another dtype than the tensor
// got: takes<tensor<int,2>,double,double>
#include <deft/expr.hpp>
using namespace deft;
placeholder<std::int32_t, 2> x("x");
auto f() { return x = {1.5, 2.5}; }
