// build error: \[range\] expects integers and integer scalars of the graph as bounds
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<float> i("i");
auto y = x(range(0, i));
