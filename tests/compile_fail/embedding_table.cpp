// build error: \[embedding\] expects ids, .*; gather\(table, ids\) takes the rows of a tensor
// got: takes<embedding,tensor<float,3,4>,tensor<int,-1>>
#include <deft/deft.hpp>
using namespace deft;
placeholder<std::int32_t, dyn> ids("ids");
variable<float, 3, 4> w("w", zeros());
auto y = embedding(w, ids);
