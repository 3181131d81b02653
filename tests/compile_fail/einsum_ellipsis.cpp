// build error: \[einsum\] expects a letter for each axis, and got an ellipsis
// got: takes<einsum,einsum_text<'.','.','.','j','-','>','j'>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
auto z = einsum("...j->j"_es, x) + 1;
