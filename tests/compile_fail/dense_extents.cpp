// build error: \[dense\] expects x of \(n,in\), weights of \(in,out\) and a bias of \(out\), of
// got: takes<dense,tensor<float,-1,784>,tensor<float,785,10>,tensor<float,10>>
#include <deft/expr.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
placeholder<float, dyn, 784> x("x");
placeholder<float, 785, 10> w("w");
placeholder<float, 10> b("b");
auto y = dense(x, w, b);
