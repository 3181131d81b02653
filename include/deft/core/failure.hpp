// SPDX-License-Identifier: Apache-2.0
// deft/core/failure.hpp: an exception of any type as an error that can be stored and sent.
#pragma once
#include <deft/core/error.hpp>
#include <memory>
#include <new>

namespace deft::ext {

/// Made beforehand, as there may be no memory for it later; never destroyed, as threads may outlive
/// static objects.
inline const std::shared_ptr<const error>& out_of_memory = *new std::shared_ptr<const error>(
    std::make_shared<const error>(errc::resource_exhausted, "out of memory"));

/// An error to be stored or sent, with `parts` joined as its message.
template <class... Parts>
std::shared_ptr<const error> make_failure(errc code, const Parts&... parts) noexcept {
  try {
    return std::make_shared<const error>(code, str(parts...));
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  }
}

/// The exception that `f` throws, of any type, as an error; null if it returns.
template <class F>
std::shared_ptr<const error> failure_of(F&& f) noexcept {
  try {
    try {
      f();
      return nullptr;
    } catch (const error& e) {
      return std::make_shared<const error>(e);
    } catch (const std::bad_alloc&) {
      return out_of_memory;
    } catch (const std::exception& e) {
      return std::make_shared<const error>(errc::internal, e.what());
    } catch (...) {
      return std::make_shared<const error>(errc::internal, "an exception of an unknown type");
    }
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  }
}

}  // namespace deft::ext
