// build error: \[run\] expects each feed as an argument.*s\.run\(y, x = {1, 2, 3}\), and got braces
// got: takes<session,tensor<float>,feed_dictionary>
#include <deft/session/session.hpp>
using namespace deft;
void run(session& s, const tensor<float, 3>& x, const tensor<float>& y,
         const ndarray<float, 3>& v) {
  s.run(y, {x, {1, 2, 3}});
}
