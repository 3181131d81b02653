// build error: \[lstm_cell\] expects its state as one, .*a kernel and a bias, or a name
// got: takes<lstm_cell,tensor<float,-1,3>,tensor<float,-1,3>,tensor<float,-1,3>,char5>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = lstm_cell(x, x, x, "cell").h;
