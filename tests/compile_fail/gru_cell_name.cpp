// build error: \[gru_cell\] expects a state, and a name, or gates, a.*gru_cell\(x, h, "cell"\)
// got: takes<gru_cell,tensor<float,-1,3>,tensor<float,-1,3>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = gru_cell(x, x);
