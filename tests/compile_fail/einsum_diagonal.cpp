// build error: \[einsum\] expects each letter of an operand once, and got one twice: it takes no
// got: takes<einsum,einsum_text<'i','i'>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ii"_es, x) + 1;
