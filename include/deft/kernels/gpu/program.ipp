// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/program.ipp: portable programs, an instruction at a time: each is a launch of
// its own, on temporaries in scratch memory.
#pragma once
#include <algorithm>
#include <deft/kernels/gpu/groups.hpp>
#include <deft/kernels/gpu/kernels.hpp>
#include <deft/kernels/gpu/node_program.hpp>
#include <deft/kernels/gpu/registered.hpp>
#include <deft/kernels/spec/offset_allocator.hpp>
#include <deft/kernels/spec/region_extents.hpp>

namespace deft::ext::gpu::DEFT_GPU_SYSTEM {
namespace {

/// Writes a program's literals to the device, 8 bytes each.
struct literal_writer {
  static constexpr int most = 32;
  std::int64_t bits[most];
  std::int64_t* to;
  DEFT_HD void operator()(std::int64_t i) const { to[i] = bits[i]; }
};
std::size_t bytes_of(const tensor_type& t) {
  return static_cast<std::size_t>(t.shape.elements()) * size_of_dtype(t.type);
}

class program_kernel final : public queued_kernel {
 public:
  /// Of an update: no instruction uses a variable after the one that gives its new value.
  explicit program_kernel(const node_program& n)
      : program_(*n.program),
        literals_(n.literals.begin(), n.literals.end()),
        update_(n.update),
        late_(n.late) {
    const program& p = program_;
    for (const auto& c : p.code) {
      if (c.is_fold()) {
        steps_.emplace_back();  // its axes follow from the extents
        continue;
      }
      steps_.push_back(make_element(*c.op, p.type_of(c.args[c.count - 1]), c.type));
      if (!steps_.back())
        fail(errc::unimplemented, "[", c.op->name, "] has no kernel on GPUs for ",
             p.type_of(c.args[c.count - 1]));
    }
    for (const auto& o : p.outputs) results_.push_back(o.value);
    if (results_.empty()) results_.push_back(static_cast<std::uint16_t>(p.values() - 1));
  }

  std::size_t scratch() const override { return scratch_; }

  void queue(const kernel_call& c, stream& s) override {
    char* const room = static_cast<char*>(c.scratch);
    const std::size_t inputs = program_.inputs.size();
    for (std::size_t v = 0; v < inputs; ++v) at_[v] = const_cast<void*>(c.in[v]);
    for (std::size_t k = 0; k < program_.immediates.size(); ++k)
      at_[inputs + k] = late_ ? const_cast<void*>(c.in[inputs + k]) : room + 8 * k;
    if (!late_) write_literals(s, room);
    for (std::size_t v = inputs + program_.immediates.size(); v < at_.size(); ++v)
      at_[v] = room + offset_[v];
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (!by_way_of_scratch(o)) at_[results_[o]] = c.out[o];
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const instruction& code = program_.code[i];
      const void* in[3];
      for (int a = 0; a < code.count; ++a) in[a] = at_[code.args[a]];
      kernel_call call = c;
      call.in = in;
      call.out = &at_[first_step() + i];
      call.scratch = room + sub_scratch_;
      steps_[i]->run(call);
    }
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (by_way_of_scratch(o))
        queue_copy(s, c.out[o], at_[results_[o]], bytes_of(types_[results_[o]]));
  }

 private:
  std::size_t first_step() const { return program_.inputs.size() + program_.immediates.size(); }
  /// An instruction that fails in some of its elements must not have written the others: what
  /// integers give goes to the variable once it is known to be well.
  bool by_way_of_scratch(std::size_t o) const {
    return update_ && !is_floating(program_.type_of(results_[o]));
  }

  void ready() override {
    find_types();
    offset_allocator<256> plan;  // of temporaries
    if (!late_) plan.take(8 * literals_.size());
    offset_.assign(types_.size(), 0);
    at_.resize(types_.size());
    std::vector<std::size_t> last(types_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i)
      for (int a = 0; a < program_.code[i].count; ++a) last[program_.code[i].args[a]] = i;
    auto is_result = [&](std::size_t v) { return std::ranges::count(results_, v) != 0; };
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (by_way_of_scratch(o)) offset_[results_[o]] = plan.take(bytes_of(types_[results_[o]]));
    std::size_t most = 0;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const instruction& code = program_.code[i];
      const std::size_t v = first_step() + i;
      if (code.is_fold())
        steps_[i] = make_reduction(*code.op, folded_axes(code.leaves, program_.row_axes, extents_),
                                   code.type);
      std::vector<tensor_type> in;
      for (int a = 0; a < code.count; ++a) in.push_back(types_[code.args[a]]);
      steps_[i]->prepare(in, {&types_[v], 1});
      most = std::max(most, steps_[i]->scratch());
      if (!is_result(v)) offset_[v] = plan.take(bytes_of(types_[v]));
      for (int a = 0; a < code.count; ++a) {
        const std::size_t used = code.args[a];
        if (used < first_step() || last[used] != i || is_result(used) ||
            std::find(code.args, code.args + a, used) != code.args + a)
          continue;
        plan.give(offset_[used], bytes_of(types_[used]));
      }
    }
    // Of all instructions: where a temporary was, it may still be needed by those that come first.
    sub_scratch_ = plan.size();
    scratch_ = sub_scratch_ + most;
  }

  /// Extents of every value, all axes of a region kept.
  void find_types() {
    types_.assign(program_.values(), {});
    const std::size_t inputs = program_.inputs.size();
    for (std::size_t v = 0; v < program_.values(); ++v) types_[v].type = program_.type_of(v);
    for (std::size_t v = 0; v < inputs; ++v) types_[v] = in_[v];
    extents_ = update_ || !program_.is_region()
                   ? out_[0].shape
                   : region_extents(program_, std::span(in_).first(inputs));
    for (std::size_t i = 0; i < program_.code.size(); ++i) {
      const instruction& c = program_.code[i];
      dims& shape = types_[first_step() + i].shape;
      for (int a = 0; a < c.count; ++a) {
        dims wider;
        broadcast(shape, types_[c.args[a]].shape, wider);
        shape = wider;
      }
      if (!c.is_fold()) continue;
      give_extents(c.args[0]);
      shape = extents_;
      for (auto d : folded_axes(c.leaves, program_.row_axes, extents_))
        shape[static_cast<int>(d)] = 1;
    }
    for (std::size_t o = 0; o < results_.size(); ++o)
      if (!program_.is_region() || program_.outputs[o].where == extent_class::element)
        give_extents(results_[o]);
  }
  /// A value is wanted at every element of the region, whatever it is made of.
  void give_extents(std::size_t v) {
    if (v >= first_step())
      types_[v].shape = extents_;
    else if (types_[v].shape != extents_)
      fail(errc::unimplemented, "[fused] an input of ", types_[v].shape,
           " is folded, or is a result, in a region of ", extents_);
  }

  void write_literals(stream& s, char* room) const {
    for (std::size_t k = 0; k < literals_.size(); k += literal_writer::most) {
      literal_writer w;
      const auto count = std::min<std::size_t>(literal_writer::most, literals_.size() - k);
      std::copy_n(&literals_[k], count, w.bits);
      w.to = s.out<std::int64_t>(room + 8 * k);
      s.launch(static_cast<std::int64_t>(count), w);
    }
  }

  program program_;
  std::vector<std::int64_t> literals_;
  bool update_, late_;
  std::vector<kernel_ptr> steps_;
  std::vector<std::uint16_t> results_;
  std::vector<tensor_type> types_;   ///< of all values
  dims extents_;                     ///< of a region
  std::vector<std::size_t> offset_;  ///< of temporaries, in scratch memory
  std::vector<void*> at_;            ///< of all values
  std::size_t sub_scratch_ = 0, scratch_ = 0;
};

}  // namespace

kernel_ptr make_program(const node_def& n, std::span<const tensor_type> in) {
  const node_program p = *program_of(n, in);
  if (auto made = p.update ? make_formula(*p.program, p.literals)
                           : make_registered(kernels_of::DEFT_GPU_SYSTEM, *p.program, p.literals))
    return made;
  return std::make_unique<program_kernel>(p);
}

}  // namespace deft::ext::gpu::DEFT_GPU_SYSTEM
