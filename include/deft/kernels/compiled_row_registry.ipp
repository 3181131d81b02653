// SPDX-License-Identifier: Apache-2.0
// deft/kernels/compiled_row_registry.ipp: the table of compiled expressions.
#pragma once
#include <deft/kernels/compiled_row_registry.hpp>
#include <deft/kernels/program_table.hpp>

namespace deft::ext {
namespace {

auto& compiled_rows() {
  constexpr auto kind = [](const fused_registration& r) { return static_cast<int>(r.fold()); };
  static auto& t = *new program_table<fused_registration, kind>;
  return t;
}

}  // namespace

constinit registry<fused_registration> fused_registration::all;

fused_registration::fused_registration(const program_ref& (*program)(), compiled_row row,
                                       fold_kind fold)
    : program_(program), row_(row), fold_(fold) {
  all.add(*this);
}

const compiled_row* find_fused(const program& p, fold_kind fold) {
  if (fold == fold_kind::mean) fold = fold_kind::sum;
  const fused_registration* found = compiled_rows().find(p, static_cast<int>(fold));
  return found ? &found->row() : nullptr;
}

}  // namespace deft::ext
