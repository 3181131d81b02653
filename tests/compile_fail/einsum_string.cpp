// build error: \[einsum\] expects its subscripts as "ij,jk->ik"_es, and got a string
// got: takes<einsum,tensor<float,3,4>,tensor<float,4,5>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ij,jk->ik", x, y) + 1;
