// build error: \[batch_norm\] expects a floating tensor, and a mean, a variance, a scale and an
// got: takes<batch_norm,tensor<float,-1,4>,tensor<float,4>,tensor<float,4>,tensor<float,4>
#include <deft/expr.hpp>
#include <deft/train/layers.hpp>
using namespace deft;
placeholder<float, dyn, 4> x("x");
placeholder<float, 4> v("v");
placeholder<double, 4> d("d");
auto y = batch_norm(x, v, v, v, d);
