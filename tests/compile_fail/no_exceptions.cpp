// build error: deft reports errors by exceptions: compile without -fno-exceptions
// several errors
// flags: -fno-exceptions
#include <deft/expr.hpp>
