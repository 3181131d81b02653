// SPDX-License-Identifier: Apache-2.0
#include <deft/core/failure.hpp>
#include <stdexcept>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("an exception of any type becomes an error that can be stored") {
  CHECK(failure_of([] {}) == nullptr);
  const auto said = [](auto&& f) {
    const auto e = failure_of(f);
    return str(e->code(), ": ", e->message());
  };
  CHECK(said([] { fail(errc::data_loss, "cut short"); }) == "data_loss: cut short");
  CHECK(said([] { throw std::bad_alloc(); }) == "resource_exhausted: out of memory");
  CHECK(said([] { throw std::out_of_range("no such key"); }) == "internal: no such key");
  CHECK(said([] { throw 42; }) == "internal: an exception of an unknown type");
}
