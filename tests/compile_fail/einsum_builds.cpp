// builds
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3, 4> x("x");
placeholder<float, 4, 5> y("y");
placeholder<float, 5> v("v");
tensor<float, dyn, 3, 5> a = einsum("bij,jk->bik"_es, x, y);
tensor<float> b = einsum("bij,jk,k->"_es, x, y, v);
tensor<float, 4, 5> c = einsum(" ij "_es, y);
tensor<float, 3, 3> d = einsum("bij,bkj->ik"_es, x, x);
tensor<float, 4, 5, dyn, 3> e = einsum("jk,bij->jkbi"_es, y, x);
any_tensor f = einsum("ij,j"_es, any_tensor(y), v);
const auto subscripts = "i,i"_es;
tensor<float> g = einsum(subscripts, v, v);
tensor<float, dyn, 3> h = matmul(x, placeholder<float, 4>("w")), i = einsum("bij->bi"_es, x);
tensor<float> j = dot(v, v * 2);
tensor<float, 5, 5> k = outer(v, v) + 1;
tensor<float, 7, dyn, 3, 5> l = matmul(x, placeholder<float, 7, 1, 4, 5>("u"));
