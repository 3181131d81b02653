// build error: \[saver\] expects options, and got a path: it is an argument of save and restore
// got: takes<saver,char7>
#include <deft/deft.hpp>
using namespace deft;
saver save("/tmp/m");
