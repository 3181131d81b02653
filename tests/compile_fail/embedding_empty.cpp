// build error: \[embedding\] expects a table of at least one row and one column
#include <deft/deft.hpp>
using namespace deft;
placeholder<std::int32_t, dyn> ids("ids");
auto y = embedding<0, 4>(ids, "words");
