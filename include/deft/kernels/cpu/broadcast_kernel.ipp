// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/broadcast_kernel.ipp: how operands are brought to where rows go together.
#pragma once
#include <deft/kernels/cpu/broadcast_kernel.hpp>
#include <deft/op/base/reduction.hpp>

namespace deft::ext::cpu {

void repeat(char* to, const void* from, std::size_t size, std::int64_t count, std::int64_t times) {
  visit_size(size, [&]<class U>() {
    constexpr std::int64_t line = 64 / sizeof(U);
    U v;
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(&v, static_cast<const char*>(from) + i * std::int64_t{sizeof v}, sizeof v);
      std::int64_t t = 0;
      if (times >= line) {
        alignas(64) U copies[line];
        std::fill(copies, copies + line, v);
        for (; t + line <= times; t += line, to += sizeof copies)
          std::memcpy(to, copies, sizeof copies);
      }
      for (; t < times; ++t, to += sizeof v) std::memcpy(to, &v, sizeof v);
    }
  });
}

integers literals_of(const program_part& part, const program& region,
                     std::span<const std::int64_t> all) {
  integers own;
  for (std::size_t i = part.program->inputs.size(); i < part.operands.size(); ++i)
    own.push_back(all[part.operands[i] - region.inputs.size()]);
  return own;
}

literal_copies::literal_copies(std::span<const dtype> types, std::span<const std::int64_t> bits,
                               int span)
    : copies_(dtype::uint8, {static_cast<std::int64_t>(types.size()) * 8 * span}), span_(span) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    sizes_.push_back(size_of_dtype(types[i]));
    set(i, literal_value(types[i], bits[i]).raw());
  }
}

broadcast_kernel::broadcast_kernel(const program_code& code, double element_cost,
                                   std::size_t inputs, std::span<const dtype> literal_types,
                                   std::span<const std::int64_t> literals, bool late)
    : code_(code),
      inputs_(inputs),
      addresses_(inputs + literals.size()),
      masks_(inputs + literals.size()),
      late_(late && !literals.empty()),
      element_cost_(element_cost),
      sources_(inputs),
      literals_(literal_types, literals, code.span()) {
  for (std::size_t i = 0; i < literals.size(); ++i) addresses_[inputs_ + i] = literals_[i];
}

void broadcast_kernel::walk(std::span<const tensor_type> all, const dims& extents,
                            std::size_t result_bytes) {
  const auto in = all.first(inputs_);
  layout_ = row_layout(in, {extents, dtype::uint8});
  sizes_.clear();
  std::int64_t width = static_cast<std::int64_t>(result_bytes), bytes = width * elements();
  for (const auto& t : in) {
    const auto size = static_cast<std::int64_t>(size_of_dtype(t.type));
    sizes_.push_back(static_cast<std::uint8_t>(size));
    width += size;
    bytes += size * t.shape.elements();
  }
  choose_sources(width);
  const double work = element_cost_ * static_cast<double>(elements());
  const auto calls = static_cast<double>(layout_.planes() * (layout_.rows() / together_ + 1));
  cost_ = 10 * calls + std::max(work, static_cast<double>(bytes) / 40);
  split_ = work > thresholds::split_work || bytes > thresholds::split_bytes;
  code_.set_far(bytes > thresholds::far_bytes);
}

/// Short rows go together: as many as stay in the first-level cache with all operands.
void broadcast_kernel::choose_sources(std::int64_t width) {
  const std::int64_t n = std::max<std::int64_t>(1, layout_.n());
  const std::int64_t most = std::clamp<std::int64_t>(24'000 / width, 64, thresholds::largest_block);
  together_ = std::clamp<std::int64_t>(most / n, 1, std::max<std::int64_t>(1, layout_.rows()));
  room_ = 0;
  single_ = elements() <= 1 || is_one_row();
  for (std::size_t k = 0; k < inputs_; ++k) {
    const bool step = layout_.step(k) != 0, rise = layout_.rise(k) != 0;
    source& s = sources_[k];
    if (together_ == 1)
      s = step ? source::direct : source::filled;
    else
      s = step ? rise ? source::direct : source::tiled : rise ? source::spread : source::filled;
    masks_[k] = s == source::filled ? 0 : ~std::uintptr_t{0};
    single_ = single_ && (s == source::direct || elements() == 1);
    room_ += copy_bytes(s);
  }
}

void broadcast_kernel::one_row(const kernel_call& c, char* room) {
  for (std::size_t k = 0; k < inputs_; ++k) {
    addresses_[k] = c.in[k];
    if (sources_[k] != source::filled) continue;
    repeat(room, c.in[k], sizes_[k], 1, code_.span());
    addresses_[k] = room;
    room += fill_bytes();
  }
}

void broadcast_kernel::copy(std::size_t k, const char* from, std::int64_t count, char* to) const {
  const std::size_t size = sizes_[k];
  const std::int64_t n = layout_.n();
  if (sources_[k] == source::filled)
    repeat(to, from, size, 1, code_.span());
  else if (sources_[k] == source::spread)
    repeat(to, from, size, count, n);
  else
    for (std::int64_t r = 0; r < together_; ++r)
      std::memcpy(to + r * n * static_cast<std::int64_t>(size), from,
                  static_cast<std::size_t>(n) * size);
}

}  // namespace deft::ext::cpu
