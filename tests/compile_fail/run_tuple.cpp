// build error: \[run\] expects the elements of a tuple one by one
#include <deft/deft.hpp>
using namespace deft;
void f(session& s, tensor<float> y, variable<float> v, variable<float> w) {
  s.run(gradients(y, v, w));
}
