// build error: \[einsum\] expects operands of one dtype, and got several: use cast
// got: takes<einsum,tensor<float,3,4>,tensor<double,4,5>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<double, 4, 5> y("y");
auto z = einsum("ij,jk"_es, x, y) + 1;
