// build error: \[einsum\] expects as many operands as there are between the commas, and got
// got: takes<einsum,einsum_text<'i','j',',','j','k'>,tensor<float,3,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ij,jk"_es, x) + 1;
