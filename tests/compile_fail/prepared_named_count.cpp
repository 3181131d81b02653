// build error: \[prepare\] the step takes one value for each tensor named in feeds
#include <deft/session/prepared.hpp>
using namespace deft;
void run(session& s, const tensor<float, 3>& x, const tensor<float, 3>& z, const tensor<float>& y) {
  auto step = s.prepare(y, feeds(x, z));
  step(x = ndarray<float, 3>{1, 2, 3});
}
