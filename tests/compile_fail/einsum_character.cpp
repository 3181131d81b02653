// build error: \[einsum\] expects letters of axes, with commas between operands and -> in front
// got: takes<einsum,einsum_text<'i','1','-','>','i'>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("i1->i"_es, x) + 1;
