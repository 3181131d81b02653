// build error: \[einsum\] expects each letter of the result once, and got one twice
// got: takes<einsum,einsum_text<'i','j','-','>','i','i'>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("ij->ii"_es, x) + 1;
