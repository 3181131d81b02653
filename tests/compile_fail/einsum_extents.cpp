// build error: \[einsum\] expects axes of one letter to have one extent, and got different ones
// got: takes<einsum,letter<'i'>,tensor<float,3,4>,tensor<float,4,5>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ij,ik->jk"_es, x, y) + 1;
