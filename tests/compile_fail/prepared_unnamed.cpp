// build error: \[prepare\] the step takes one value for each tensor named in feeds
#include <deft/deft.hpp>
using namespace deft;
float f(session& s, const placeholder<float>& x) {
  auto step = s.prepare(x * 2);
  return step(3.f);
}
