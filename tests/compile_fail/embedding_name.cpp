// build error: \[embedding\] expects ids, the rows and.*embedding<10.000, 64>\(ids, "words"\)
// got: takes<embedding,tensor<int,-1>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<std::int32_t, dyn> ids("ids");
auto y = embedding<100, 8>(ids);
