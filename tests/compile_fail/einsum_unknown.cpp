// build error: \[einsum\] expects letters of operands in the result, and got one that none has
// got: takes<einsum,einsum_text<'i','j','-','>','k'>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ij->k"_es, x) + 1;
