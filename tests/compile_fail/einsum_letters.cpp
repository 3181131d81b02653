// build error: \[einsum\] expects 8 letters at most for each tensor, and got more
// got: takes<einsum,einsum_text<'a','b','c','d','e','f','g','h','i'>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("abcdefghi"_es, x) + 1;
