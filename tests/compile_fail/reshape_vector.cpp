// build error: \[reshape\] expects a shape, .*: reshape\(x, shape<dyn, 3>\)
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = reshape(x, std::vector<std::int64_t>{3});
