// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/compiled_program.ipp: layouts and arguments of programs that are one kernel.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/kernels/gpu/compiled_program.hpp>
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/row_fold.hpp>
#include <deft/kernels/spec/region_extents.hpp>

namespace deft::ext::gpu {
namespace {

template <class T>
std::uint64_t word_of(T v) {
  static_assert(sizeof(T) == 8);
  return __builtin_bit_cast(std::uint64_t, v);
}

bool folds_columns(const instruction& c) { return c.is_fold() && c.leaves == extent_class::column; }

}  // namespace

void compiled_program::prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) {
  in_.assign(in.begin(), in.end());
  out_.assign(out.begin(), out.end());
  const bool folds = std::ranges::any_of(program_.code, &instruction::is_fold);
  const bool alike =
      std::ranges::all_of(out, [&](const tensor_type& t) { return t.shape == out[0].shape; });
  scratch_ = 0;
  if (!folds && alike) return prepare_elements(form::elements);
  if (program_.row_axes > 0)
    return prepare_rows(std::ranges::any_of(program_.code, folds_columns) ? form::columns
                                                                          : form::rows);
  if (folds) return prepare_elements(form::whole);
  unsupported();
}

void compiled_program::unsupported() {
  source_.clear();
  form_ = form::none;
}
argument_words compiled_program::words() const {
  return argument_words(in_.size(), out_.size(), options_.late ? 0 : literals_.size(),
                        static_cast<std::size_t>(levels_));
}

void compiled_program::prepare_elements(form f) {
  tensor_type all = out_[0];
  if (f == form::whole)
    all.shape = region_extents(program_, std::span(in_).first(program_.inputs.size()));
  layout_ = row_layout(in_, all);
  count_ = layout_.elements();
  if (count_ == 0) return unsupported();
  const int levels = layout_.levels();
  const std::size_t last = layout_.extents().size() - 1;
  std::vector<bool> broadcast;
  for (std::size_t k = 0; k < in_.size(); ++k) broadcast.push_back(layout_.steps(k)[last] == 0);
  if (f != form_ || levels != levels_ || broadcast != broadcast_)
    source_ = f == form::whole ? whole_source(program_, levels, broadcast, options_)
                               : element_source(program_, levels, broadcast, options_);
  form_ = f, levels_ = levels, broadcast_ = std::move(broadcast);
  if (f == form::whole && fold_parts(1, count_) > 1)
    scratch_ = 8 * static_cast<std::size_t>(fold_parts(1, count_)) * out_.size();

  const argument_words at = words();
  words_.assign(at.size, 0);
  for (std::size_t level = 0; level + 1 < static_cast<std::size_t>(levels); ++level) {
    const divider extent(layout_.extents()[last - level]);
    std::memcpy(&words_[at.extents + 2 * level], &extent, sizeof extent);
    static_assert(sizeof extent == 16 && std::is_trivially_copyable_v<divider>);
    for (std::size_t k = 0; k < in_.size(); ++k)
      words_[at.steps + level * in_.size() + k] =
          word_of(layout_.steps(k)[last - level - 1] /
                  static_cast<std::int64_t>(size_of_dtype(in_[k].type)));
  }
}

void compiled_program::prepare_rows(form f) {
  const auto inputs = std::span(in_).first(program_.inputs.size());
  const dims extents = region_extents(program_, inputs);
  const int outer = extents.rank() - program_.row_axes;
  count_ = n_ = 1;
  for (int d = 0; d < extents.rank(); ++d) (d < outer ? count_ : n_) *= extents[d];
  const bool in_parts = (f == form::rows ? fold_parts(count_, n_) : fold_parts(n_, count_)) > 1;
  if (count_ == 0 || n_ == 0 || in_parts) return unsupported();
  std::vector<extent_class> classes;
  try {
    for (const auto& t : inputs) classes.push_back(class_of(t.shape, extents, outer));
    if (form_ != f || classes != classes_)
      source_ = f == form::rows ? row_source(program_, classes, options_)
                                : column_source(program_, classes, options_);
  } catch (const error& e) {  // an extent of 1 where the region was made for others
    if (e.code() != errc::invalid_argument) throw;
    return unsupported();
  }
  form_ = f, levels_ = 1, classes_ = std::move(classes);
  words_.assign(words().size, 0);
}

std::span<const char* const> compiled_program::kernels() const {
  static constexpr const char* elements[] = {"groups_of_4", "single", "check"};
  static constexpr const char* rows[] = {"rows", "long_rows"};
  static constexpr const char* columns[] = {"columns", "long_columns"};
  static constexpr const char* whole[] = {"parts", "folds"};
  switch (form_) {
    case form::elements:
      return std::span(elements).first(checked_ ? 3 : 2);
    case form::rows:
      return rows;
    case form::columns:
      return columns;
    case form::whole:
      return whole;
    case form::none:
      break;
  }
  return {};
}

std::span<const program_launch> compiled_program::launches(const kernel_call& c,
                                                           const fault_report& faults) {
  using w = argument_words;
  const w at = words();
  words_[w::count] = word_of(count_);
  words_[w::n] = word_of(n_);
  words_[w::record] = word_of(faults.record);
  words_[w::item] = faults.item;
  words_[w::scratch] = word_of(c.scratch);
  for (std::size_t k = 0; k < in_.size(); ++k) words_[w::in + k] = word_of(c.in[k]);
  for (std::size_t o = 0; o < out_.size(); ++o) words_[at.out + o] = word_of(c.out[o]);
  if (!options_.late)
    for (std::size_t l = 0; l < literals_.size(); ++l)
      words_[at.literals + l] = word_of(literals_[l]);

  auto blocks = [](std::int64_t n, std::int64_t each) {
    return static_cast<std::uint32_t>((n + each - 1) / each);
  };
  auto set_lanes = [](std::vector<std::uint64_t>& words, std::int64_t n) {
    words[w::lanes] = static_cast<std::uint64_t>(fold_lanes(n));
    return fold_lanes(n);
  };
  const std::span<const char* const> kernel = kernels();
  if (form_ == form::rows) {
    const int lanes = set_lanes(words_, n_);
    launches_[0] = lanes > 32 ? program_launch{kernel[1], blocks(count_, 1), 256, words_}
                              : program_launch{kernel[0], blocks(count_, 128 / lanes), 128, words_};
  } else if (form_ == form::columns) {
    const int lanes = set_lanes(words_, count_);
    const int deep = lanes > 32 ? lanes / column_lanes_of_thread(program_) : lanes;
    const int wide = deep == 32 ? 16 : std::max(32, 256 / deep);
    launches_[0] = {kernel[lanes > 32 ? 1 : 0], blocks(n_, wide),
                    static_cast<std::uint32_t>(wide * deep), words_};
  } else if (form_ == form::whole) {
    const std::int64_t parts = fold_parts(1, count_);
    const std::int64_t n = parts == 1 ? count_ : part_columns(count_);
    words_[w::n] = word_of(n);
    set_lanes(words_, n);
    launches_[0] = {kernel[0], blocks(count_, n), 256, words_};
    if (parts > 1) {
      more_words_ = words_;
      more_words_[w::n] = word_of(parts);
      set_lanes(more_words_, parts);
      launches_[1] = {kernel[1], 1, 256, more_words_};
      return launches_;
    }
  } else {
    const bool groups = has_groups(4, layout_, c, in_, out_);
    const std::int64_t threads = groups ? (count_ + 3) / 4 : count_;
    const program_launch all{kernel[groups ? 0 : 1], blocks(threads, 256), 256, words_};
    if (checked_) {
      launches_[0] = {kernel[2], blocks(count_, 256), 256, words_};
      launches_[1] = all;
      return launches_;
    }
    launches_[0] = all;
  }
  return std::span(launches_).first(1);
}

}  // namespace deft::ext::gpu
