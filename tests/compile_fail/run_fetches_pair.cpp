// build error: \[run\] expects each feed as an argument.*s\.run\(y, x = {1, 2, 3}\), and got braces
// got: feed_dictionary>
#include <deft/session/session.hpp>
using namespace deft;
void run(session& s, const tensor<float, 3>& x, const operation& train, const tensor<float>& y) {
  s.run(train, y, {x, {1, 2, 3}});
}
