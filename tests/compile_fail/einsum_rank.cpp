// build error: \[einsum\] expects a letter for each axis of an operand, and got
// got: takes<einsum,einsum_text<'i','j',',','j'>,tensor<float,3,4>,tensor<float,4,5>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ij,j"_es, x, y) + 1;
