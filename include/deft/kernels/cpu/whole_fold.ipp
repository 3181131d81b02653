// SPDX-License-Identifier: Apache-2.0
// deft/kernels/cpu/whole_fold.ipp: the kernel of regions with folds over all elements.
#pragma once
#include <deft/kernels/cpu/broadcast_kernel.hpp>
#include <deft/kernels/cpu/reduction_kernels.hpp>
#include <deft/kernels/cpu/tables.hpp>
#include <optional>

namespace deft::ext::cpu {
namespace {

/// A value that is only folded, by a compiled fold over operands of the region.
struct user_fold {
  program_code code;
  std::vector<std::uint16_t> operands;
  double cost;  ///< see element_cost
};

std::optional<user_fold> find_user_fold(const program& p, const instruction& fold) {
  const std::uint16_t v = fold.args[0];
  if (!p.made_by(v) || std::ranges::any_of(p.outputs, [&](auto& o) { return o.value == v; }))
    return std::nullopt;
  const std::vector<std::uint16_t> results{v};
  const auto operands = p.inputs.size() + p.immediates.size();
  program_part part = extract(p, results, [&](std::uint16_t value) { return value < operands; });
  if (!part.program->immediates.empty()) return std::nullopt;
  user_fold f{program_code(*part.program), std::move(part.operands), element_cost(*part.program)};
  f.code.find_fold(*part.program, fold.op->folds);
  if (!f.code.can_fold_at_once()) return std::nullopt;
  return f;
}

/// What a region computes for each element, as an expression or a region without folds; without
/// any code where nothing but inputs is folded.
struct element_part {
  program_part part;
  std::vector<std::uint16_t> results;         ///< values: results of the region, and what is folded
  std::vector<std::optional<user_fold>> own;  ///< of each output of the region

  explicit element_part(const program& p) : own(p.outputs.size()) {
    for (std::size_t o = 0; o < own.size() && own.size() > 1; ++o)
      if (const instruction& made = *p.made_by(p.outputs[o].value); made.is_fold())
        own[o] = find_user_fold(p, made);
    take(p);
    // Other operands are not brought to where they are used; and what costs more than to be written
    // down is not computed twice.
    bool all = !results.empty();
    double cost = element_cost(*part.program), most = element_cost(p);
    for (const auto& f : own)
      if (f) {
        all = all && std::ranges::all_of(f->operands, [&](std::uint16_t v) {
                return std::ranges::count(part.operands, v) > 0;
              });
        cost += f->cost, most += writing;
      }
    if (all && cost <= most) return;
    std::ranges::fill(own, std::nullopt);
    take(p);
  }

 private:
  static constexpr double writing = .1;  ///< nanoseconds for an element

  void take(const program& p) {
    results.clear();
    std::vector<std::uint16_t> folded;  // inputs
    auto add = [&](std::uint16_t v) {
      auto& to = p.made_by(v) ? results : folded;
      if (std::ranges::count(to, v) == 0) to.push_back(v);
    };
    // Results of the region come last, so that they may be written over its inputs.
    for (std::size_t o = 0; o < own.size(); ++o)
      if (const instruction& made = *p.made_by(p.outputs[o].value); made.is_fold() && !own[o])
        add(made.args[0]);
    for (const auto& o : p.outputs)
      if (!p.made_by(o.value)->is_fold()) add(o.value);
    const auto operands = p.inputs.size() + p.immediates.size();
    if (!results.empty()) {
      part = extract(p, results, [&](std::uint16_t v) { return v < operands; });
      return;
    }
    program inputs;
    for (auto v : folded) inputs.inputs.push_back(p.type_of(v));
    part = {std::make_shared<const program>(std::move(inputs)), std::move(folded)};
  }
};

/// Folds over all elements, and results for each.
class whole_fold_kernel final : public broadcast_kernel {
 public:
  whole_fold_kernel(const program& p, std::span<const std::int64_t> literals)
      : whole_fold_kernel(p, literals, element_part(p)) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type>) override {
    const dims extents = region_extents(program_, in);
    for (const auto& f : folds_)
      if (f.is_input && !(in[taken_[f.of]].shape == extents))
        fail(errc::invalid_argument, "[fused] input ", taken_[f.of], " of shape ",
             in[taken_[f.of]].shape, " is folded over ", extents);
    std::vector<tensor_type> taken;
    for (auto k : taken_) taken.push_back(in[k]);
    std::size_t bytes = 0;
    for (const auto& r : results_)
      if (r.output != none) bytes += r.size;
    walk(taken, extents, bytes);
    buffer_bytes_ = 0;
    for (auto& r : results_)
      if (r.output == none) {
        r.offset = buffer_bytes_;
        buffer_bytes_ += block() * r.size;
      }
    own_offset_ = buffer_bytes_;
    if (std::ranges::any_of(folds_, [](const whole_fold& f) { return f.own.has_value(); }))
      buffer_bytes_ += block() * sizeof(std::int64_t);  // the widest element
    pieces_ = 1, each_ = elements();
    if (split_) {
      each_ = chunk_elements;  // a power of two of any fold's leaves
      while (each_ * 32 < elements()) each_ *= 2;
      pieces_ = std::max<std::int64_t>(1, (elements() + each_ - 1) / each_);
    }
  }
  bool may_overwrite(std::size_t i, std::size_t o) const override {
    const auto to = std::ranges::find(results_, o, &result::output);
    if (to == results_.end() || std::ranges::count(taken_, i) == 0) return false;
    // The element part has an input for every place where the region reads `i`.
    for (std::uint16_t k = 0; k < taken_.size(); ++k)
      if (taken_[k] == i &&
          (!code_.may_overwrite(k, static_cast<std::size_t>(to - results_.begin())) ||
           std::ranges::any_of(folds_,
                               [&](const whole_fold& f) { return f.is_input && f.of == k; })))
        return false;
    return true;
  }
  std::size_t scratch() const override { return pieces_ > 1 ? shared_bytes(pieces_) : 0; }

  void run(const kernel_call& all) override {
    for (std::size_t k = 0; k < taken_.size(); ++k) in_[k] = all.in[taken_[k]];
    const kernel_call c{in_.data(), all.out, all.step};
    if (pieces_ == 1 || !worth_splitting(cost_)) {
      auto* room = static_cast<char*>(thread_scratch(own_bytes() + shared_bytes(1)));
      const streams s = share(c, room + own_bytes(), 1);
      piece(c, 0, elements(), room, s, 0);
      return end(c, s);
    }
    const streams s = share(c, static_cast<char*>(all.scratch), pieces_);
    parallel_chunks(pieces_, [&](std::int64_t i) {
      piece(c, i * each_, std::min(elements(), (i + 1) * each_),
            static_cast<char*>(thread_scratch(own_bytes())), s, i);
    });
    end(c, s);
  }

 private:
  static constexpr std::uint16_t none = 0xffff;

  struct result {
    std::size_t size = 0;         ///< bytes of an element
    std::uint16_t output = none;  ///< of the region
    std::size_t offset = 0;       ///< in a thread's buffer, unless it is an output
  };
  struct whole_fold {
    const fold_functions* how;
    std::uint16_t output;
    std::uint16_t of;  ///< result, or input of the element part
    bool is_input;
    std::optional<user_fold> own;  ///< of inputs of the element part; then there is no result
  };
  /// A stream for each piece of each fold, fold by fold.
  struct streams {
    char* memory;
    std::int64_t pieces;
  };

  /// With the compiled fold, if all that becomes of the elements is one.
  static program_code code_for(const program& p, const element_part& e) {
    program_code code(*e.part.program);
    if (p.outputs.size() == 1 && !e.results.empty())
      code.find_fold(*e.part.program, p.made_by(p.outputs[0].value)->op->folds);
    return code;
  }
  whole_fold_kernel(const program& p, std::span<const std::int64_t> literals, const element_part& e)
      : broadcast_kernel(code_for(p, e), element_cost(p), e.part.program->inputs.size(),
                         e.part.program->immediates, literals_of(e.part, p, literals), false),
        program_(p),
        in_(e.part.program->inputs.size()) {
    taken_.assign(e.part.operands.begin(),
                  e.part.operands.begin() + static_cast<std::ptrdiff_t>(in_.size()));
    for (auto t : e.part.program->inputs)
      input_sizes_.push_back(static_cast<std::int64_t>(size_of_dtype(t)));
    for (auto v : e.results) results_.push_back({size_of_dtype(p.type_of(v))});
    for (std::uint16_t o = 0; o < p.outputs.size(); ++o) {
      const std::uint16_t v = p.outputs[o].value;
      const instruction& made = *p.made_by(v);
      auto result_of = [&](std::uint16_t value) {
        return static_cast<std::uint16_t>(std::ranges::find(e.results, value) - e.results.begin());
      };
      if (!made.is_fold()) {
        results_[result_of(v)].output = o;
        continue;
      }
      auto input_of = [&](std::uint16_t value) {
        const auto at = std::ranges::find(taken_, value);
        if (at == taken_.end())
          fail(errc::unimplemented, "[fused] input ", value,
               " is only folded, in a region of others");
        return static_cast<std::uint16_t>(at - taken_.begin());
      };
      const std::uint16_t of = made.args[0];
      const bool is_input = !p.made_by(of);
      whole_fold f{&find_fold(made.op->folds, made.type), o, 0, is_input, e.own[o]};
      if (f.own) {
        for (auto& operand : f.own->operands) operand = input_of(operand);
        code_.widen(f.own->code.span());
      } else {
        f.of = is_input ? input_of(of) : result_of(of);
      }
      folds_.push_back(std::move(f));
      stream_bytes_ += folds_.back().how->stream_bytes;
    }
  }

  /// Elements that are computed before they are folded.
  std::size_t block() const {
    return code_.compiled().run ? thresholds::folded_block : thresholds::folded_block_of_steps;
  }
  /// What a piece needs for itself: what changes from group to group, then buffers.
  std::size_t own_bytes() const { return room() + buffer_bytes_; }
  /// What all have in common: single elements of the only row, then streams.
  std::size_t shared_bytes(std::int64_t pieces) const {
    return room() + stream_bytes_ * static_cast<std::size_t>(pieces);
  }
  streams share(const kernel_call& c, char* memory, std::int64_t pieces) {
    if (is_one_row()) one_row(c, memory);
    return {memory + room(), pieces};
  }

  void* stream(const streams& s, std::size_t fold, std::int64_t piece) const {
    char* at = s.memory;
    for (std::size_t f = 0; f < fold; ++f)
      at += folds_[f].how->stream_bytes * static_cast<std::size_t>(s.pieces);
    return at + folds_[fold].how->stream_bytes * static_cast<std::size_t>(piece);
  }

  /// Elements `begin` to `end`.
  void piece(const kernel_call& c, std::int64_t begin, std::int64_t end, char* memory,
             const streams& s, std::int64_t number) const {
    void* into[program::most_outputs];
    for (std::size_t f = 0; f < folds_.size(); ++f) {
      into[f] = stream(s, f, number);
      folds_[f].how->begin(into[f]);
    }
    if (begin == end) return;
    char* buffers = memory + room();
    if (is_one_row() && code_.can_fold()) begin = fold_packs(begin, end, into[0]);
    if (is_one_row())
      return elements_of(c, {addresses_.data(), masks_.data(), nullptr, elements()}, 0, begin, end,
                         buffers, into);
    some_rows(c, unit_of(begin), unit_of(end - 1) + 1, memory,
              [&](const row_call& r, std::int64_t element) {
                elements_of(c, r, element, std::max(begin, element), std::min(end, element + r.n),
                            buffers, into);
              });
  }
  /// Whole packs of the only row, where they are computed; up to which element.
  std::int64_t fold_packs(std::int64_t begin, std::int64_t end, void* stream) const {
    const void* in[3 * max_fused_operations];
    std::copy(addresses_.begin(), addresses_.end(), in);
    std::int64_t sizes[3 * max_fused_operations];
    for (std::size_t k = 0; k < in_.size(); ++k) {
      sizes[k] = masks_[k] ? input_sizes_[k] : 0;
      in[k] = static_cast<const char*>(in[k]) + begin * sizes[k];
    }
    return begin + fold_packs(code_, *folds_[0].how, {in, in_.size()}, sizes, masks_.data(),
                              end - begin, stream);
  }
  /// Whole packs of `n` elements; how many elements they are. Moves `in` behind them.
  static std::int64_t fold_packs(const program_code& code, const fold_functions& how,
                                 std::span<const void*> in, const std::int64_t* sizes,
                                 const std::uintptr_t* masks, std::int64_t n, void* stream) {
    n = n / how.lanes * how.lanes;
    for (std::int64_t done = 0; done < n;) {
      std::int64_t most;
      void* lanes = how.open(stream, most);
      const std::int64_t some = std::min(most, n - done);
      code.fold({{in.data(), masks, lanes, some}});
      how.close(stream, some);
      for (std::size_t k = 0; k < in.size(); ++k)
        in[k] = static_cast<const char*>(in[k]) + some * sizes[k];
      done += some;
    }
    return n;
  }
  /// Folds `n` elements of a value that the fold computes by itself; of the only row, whole packs
  /// at once.
  void fold_own(const whole_fold& f, const void* const* from, const std::uintptr_t* all_masks,
                std::int64_t n, void* buffer, void* stream) const {
    const void* in[3 * max_fused_operations];
    std::uintptr_t masks[3 * max_fused_operations];
    std::int64_t sizes[3 * max_fused_operations];
    const std::size_t count = f.own->operands.size();
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint16_t of = f.own->operands[k];
      in[k] = from[of], masks[k] = all_masks[of], sizes[k] = masks[k] ? input_sizes_[of] : 0;
    }
    if (is_one_row()) n -= fold_packs(f.own->code, *f.how, {in, count}, sizes, masks, n, stream);
    if (n == 0) return;
    f.own->code.run(program_call{in, masks, &buffer, n});
    f.how->add(stream, buffer, n);
  }
  /// Of `r`, whose first is number `first`, the elements `begin` to `end`.
  void elements_of(const kernel_call& c, const row_call& r, std::int64_t first, std::int64_t begin,
                   std::int64_t end, char* buffers, void* const* into) const {
    const std::size_t operands = addresses_.size();
    const void* in[3 * max_fused_operations];
    std::copy(r.in, r.in + operands, in);
    const auto most = static_cast<std::int64_t>(block());
    for (std::int64_t at = begin; at < end; at += most) {
      const std::int64_t n = std::min(most, end - at);
      for (std::size_t k = 0; k < in_.size(); ++k)
        if (r.mask[k]) in[k] = static_cast<const char*>(r.in[k]) + (at - first) * input_sizes_[k];
      void* to[program::most_outputs];
      for (std::size_t i = 0; i < results_.size(); ++i) {
        const result& x = results_[i];
        to[i] = x.output == none
                    ? buffers + x.offset
                    : static_cast<char*>(c.out[x.output]) + at * static_cast<std::int64_t>(x.size);
      }
      // First, as results may be written over the inputs.
      for (std::size_t f = 0; f < folds_.size(); ++f)
        if (folds_[f].own) fold_own(folds_[f], in, r.mask, n, buffers + own_offset_, into[f]);
      if (!results_.empty()) code_.run(program_call{in, r.mask, to, n});
      for (std::size_t f = 0; f < folds_.size(); ++f) {
        const whole_fold& x = folds_[f];
        if (!x.own) x.how->add(into[f], x.is_input ? in[x.of] : to[x.of], n);
      }
    }
  }

  void end(const kernel_call& c, const streams& s) const {
    for (std::size_t f = 0; f < folds_.size(); ++f)
      folds_[f].how->end(stream(s, f, 0), s.pieces, elements(), c.out[folds_[f].output]);
  }

  const program program_;
  std::vector<std::uint16_t> taken_;  ///< of the element part's inputs, the region's
  std::vector<const void*> in_;
  std::vector<std::int64_t> input_sizes_;
  std::vector<result> results_;
  std::vector<whole_fold> folds_;
  std::size_t buffer_bytes_ = 0, own_offset_ = 0, stream_bytes_ = 0;
  std::int64_t pieces_ = 1, each_ = 0;  ///< where it is split: how many, and their elements
};

}  // namespace

kernel_ptr make_region(const program& p, std::span<const std::int64_t> immediates) {
  if (p.row_axes > 0) return make_row_region(p, immediates);
  return std::make_unique<whole_fold_kernel>(p, immediates);
}

}  // namespace deft::ext::cpu
