// build error: \[scatter\] expects numbers, int32 or int64 indices of rows of them, and these rows
// got: takes<scatter,tensor<float,4,3>,tensor<int,2>,tensor<float,2,2>>
#include <deft/expr.hpp>
using namespace deft;
auto of(const tensor<float, 4, 3>& x, const tensor<std::int32_t, 2>& i,
        const tensor<float, 2, 2>& rows) {
  return scatter(x, i, rows);
}
