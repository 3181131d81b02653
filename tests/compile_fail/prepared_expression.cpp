// build error: \[prepare\] the step takes values on the host, in the order of feeds\(x, y\), as in
// step\(images, labels\)
#include <deft/session/prepared.hpp>
using namespace deft;
void run(session& s, const tensor<float, 3>& x, const tensor<float>& y) {
  auto step = s.prepare(y, feeds(x));
  step(x + 1);
}
