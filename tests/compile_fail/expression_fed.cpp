// build error: e = v: an unnamed expression is fed by feed\(e, v\), and is not assigned to: name a
// got: takes<tensor<float>,float>
#include <deft/deft.hpp>
using namespace deft;
placeholder<float, 3> x("x");
void f(session& s) {
  auto e = sum(x) + 1;
  s.run(e, e = 3.f);
}
