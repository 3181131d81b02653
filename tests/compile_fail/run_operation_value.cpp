// build error: \[run\] an operation yields no value: fetch w.assign_add\(x\).value\(\)
// got: takes<float,operation>
#include <deft/deft.hpp>
using namespace deft;
float f(session& s, const variable<float>& w) {
  float v = s.run(w.assign_add(1));
  return v;
}
