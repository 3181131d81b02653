// SPDX-License-Identifier: Apache-2.0
// tests/cuda/called_as.hpp: compares what deft declares of a C library with the library's header.
#pragma once
#include <type_traits>

namespace testing {

/// Whether A is passed as B is: pointers as pointers, numbers as numbers of that size.
template <class A, class B>
constexpr bool passed_as = std::is_pointer_v<A>&& std::is_pointer_v<B>;
template <class A, class B>
requires(std::is_arithmetic_v<A> || std::is_enum_v<A>) &&
    std::is_arithmetic_v<B> constexpr bool passed_as<A, B> = sizeof(A) == sizeof(B);
template <class A, class B>
constexpr bool called_as = false;
template <class R, class... A, class S, class... B>
requires(sizeof...(A) ==
         sizeof...(B)) constexpr bool called_as<R(A...), S (*)(B...)> = passed_as<R, S> &&
                                                                        (passed_as<A, B> && ...);

}  // namespace testing
