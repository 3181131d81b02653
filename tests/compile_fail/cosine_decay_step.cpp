// build error: \[cosine_decay\] expects the training step after the rate: cosine_decay\(0.1,
// got: takes<cosine_decay,double,int>
#include <deft/deft.hpp>
using namespace deft;
auto rate = cosine_decay(0.1, 1000);
