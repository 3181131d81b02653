// build error: \[concat\] expects the axis first, .*: .* concat\(axis<0>, v\) of a vector
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = concat(std::vector<any_tensor>{x}, 0);
