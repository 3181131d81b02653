// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/compiled_program.hpp: a program as one kernel: its source for the shapes at
// hand, and what that is launched with.
#pragma once
#include <deft/kernels/gpu/cuda_codegen.hpp>
#include <deft/kernels/kernel.hpp>
#include <deft/kernels/spec/row_layout.hpp>

namespace deft::ext::gpu {

/// One launch of a kernel of the compiled source; its argument is the structure of these words.
struct program_launch {
  const char* kernel = nullptr;
  std::uint32_t blocks = 0, threads = 0;
  std::span<const std::uint64_t> arguments;
};

/// What a kernel of a portable program runs by where its device loads compiled code. Made and
/// prepared as a kernel is; a run then queues what `launches` says.
class compiled_program {
 public:
  compiled_program(const program& p, std::span<const std::int64_t> literals, source_options options)
      : program_(p),
        literals_(literals.begin(), literals.end()),
        options_(options),
        checked_(is_checked(p, options)) {}

  /// Types of the operands, literals among them if they are late, and of the results.
  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out);
  /// Whether there is a source for these types. Not of no elements, nor where rows or columns are
  /// few and long, nor for what gpu/cuda_codegen.hpp does not support.
  bool supported() const { return !source_.empty(); }
  const std::string& source() const { return source_; }
  /// The names of its kernels.
  std::span<const char* const> kernels() const;

  std::size_t scratch() const { return scratch_; }
  /// One after the other, of a run's addresses, those of the device. Until the next call.
  std::span<const program_launch> launches(const kernel_call& c, const fault_report& faults);

 private:
  enum class form { none, elements, rows, columns, whole };

  void prepare_elements(form f);
  void prepare_rows(form f);
  void unsupported();
  argument_words words() const;

  const program program_;
  const std::vector<std::int64_t> literals_;
  const source_options options_;
  const bool checked_;
  std::vector<tensor_type> in_, out_;
  std::string source_;
  std::size_t scratch_ = 0;
  // What source_ was made for.
  form form_ = form::none;
  int levels_ = 1;
  row_layout layout_;
  std::vector<bool> broadcast_;
  std::vector<extent_class> classes_;
  std::vector<std::uint64_t> words_, more_words_;
  program_launch launches_[2];
  std::int64_t count_ = 0, n_ = 0;
};

}  // namespace deft::ext::gpu
