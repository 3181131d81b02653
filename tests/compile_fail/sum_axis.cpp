// build error: expect axes within the tensor's rank, each once
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = sum(x, axis<1>);
