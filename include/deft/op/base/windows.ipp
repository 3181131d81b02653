// SPDX-License-Identifier: Apache-2.0
// deft/op/base/windows.ipp: what is wrong with windows.
#pragma once
#include <deft/op/base/windows.hpp>

namespace deft {

void op::refuse_windows(std::string_view op, window_fault f, const dims& x, bool filters,
                        const dims& other, const dims& stride, bool same) {
  const std::string given = filters ? to_string(other) : ext::list_text(other);
  const std::string what = (filters ? "filters of " : "windows of ") + given;
  switch (f) {
    case window_fault::rank:
      ext::fail(errc::invalid_argument, "[", op,
                "] expects images (batch, height, width, channels)",
                filters ? " and filters (height, width, channels, outputs)" : "", ", and got ", x,
                " and ", what);
    case window_fault::window_rank:
      ext::fail(errc::invalid_argument, "[", op, "] expects ",
                filters ? "filters (height, width, channels, outputs)" : "windows (height, width)",
                ", and got ", given);
    case window_fault::channels:
      ext::fail(errc::invalid_argument, "[", op,
                "] expects filters of as many channels as the images ", x, " have, and got ",
                given);
    case window_fault::stride:
      ext::fail(errc::invalid_argument, "[", op,
                "] expects a stride of 1 or more along height and ", "width, and got ",
                ext::list_text(stride));
    case window_fault::extent:
      ext::fail(errc::invalid_argument, "[", op, "] expects ", filters ? "filters" : "windows",
                " of 1 or more along height and width, and got ", given);
    case window_fault::elements:
      ext::fail(errc::invalid_argument, "[", op, "] too many elements: ", what, " over ", x);
    case window_fault::none:
    case window_fault::window:
      break;
  }
  ext::fail(errc::invalid_argument, "[", op, "] ", what, " do not fit into images of ", x,
            same ? "" : " without padding: use padding::same, or smaller ones");
}

}  // namespace deft
