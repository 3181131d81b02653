// SPDX-License-Identifier: Apache-2.0
// tests/kernels/gpu/host_programs.hpp: runs generated source of programs on the host.
#pragma once
#include <deft/kernels/gpu/compiled_program.hpp>

#include <cstring>
#include <memory>

#include "../arrays.hpp"
#include "host_cuda.hpp"

namespace testing {

/// A program with operands, and its kernel in a library.
struct host_program {
  deft::ext::program_ref program;
  deft::ext::integers literals;
  std::vector<any_array> inputs;  ///< with the literals, where they are late
  std::vector<deft::ext::tensor_type> out;
  deft::ext::gpu::source_options options;
  std::unique_ptr<deft::ext::gpu::compiled_program> compiled;

  host_program(deft::ext::program_ref p, deft::ext::integers literals_,
               std::vector<any_array> inputs_, std::vector<deft::ext::tensor_type> out_,
               deft::ext::gpu::source_options options_ = {})
      : program(std::move(p)),
        literals(std::move(literals_)),
        inputs(std::move(inputs_)),
        out(std::move(out_)),
        options(options_),
        compiled(std::make_unique<deft::ext::gpu::compiled_program>(*program, literals, options)) {
    if (options.late)
      for (std::size_t k = 0; k < literals.size(); ++k)
        inputs.push_back(deft::ext::literal_value(program->immediates[k], literals[k]));
    std::vector<deft::ext::tensor_type> in;
    for (const auto& v : inputs) in.push_back({v.shape(), v.type()});
    compiled->prepare(in, out);
  }
};

/// The results of a run.
struct host_result {
  std::vector<any_array> outputs;
  deft::ext::gpu::fault_record record{};
  std::string kernel;
};

/// Several programs that are compiled together.
class host_programs {
 public:
  explicit host_programs(const std::vector<host_program>& all) {
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string own = all[i].compiled->source();
      if (own.empty()) deft::ext::fail(deft::errc::unimplemented, all[i].program->signature);
      own.erase(0, deft::ext::gpu::prelude.size());
      for (std::size_t at; (at = own.find("extern \"C\" ")) != std::string::npos;)
        own.erase(at, 11);
      text += deft::ext::str("namespace p", i, " {\n", own, "}\nextern \"C\" unsigned size", i,
                             "() { return sizeof(p", i, "::args); }\n");
      const bool together = all[i].compiled->kernels()[0] != std::string_view("groups_of_4");
      for (const char* k : all[i].compiled->kernels())
        text += deft::ext::str(
            "extern \"C\" void ", k, i,
            "(const void* a, unsigned blocks, unsigned threads) {\n  launch([](const "
            "void* a) { p",
            i, "::", k, "(*static_cast<const p", i, "::args*>(a)); }, a, blocks, ", "threads, ",
            together ? "true" : "false", ");\n}\n");
    }
    library_ = std::make_unique<host_library>(text);
  }

  /// Operands are `shift` elements off an aligned address. `in_place`: results overwrite the
  /// operands of the same numbers.
  host_result run(const host_program& p, std::size_t i, std::size_t shift = 0,
                  bool in_place = false, bool failed = false) const {
    host_result r;
    r.record.taken = failed;
    std::vector<space> spaces;
    std::vector<const void*> in;
    std::vector<void*> out;
    for (const auto& v : p.inputs) {
      spaces.emplace_back(v.type(), v.bytes(), shift);
      std::memcpy(spaces.back().at, v.raw(), v.bytes());
      in.push_back(spaces.back().at);
    }
    for (std::size_t o = 0; o < p.out.size(); ++o) {
      r.outputs.emplace_back(p.out[o].type, p.out[o].shape);
      if (!in_place) spaces.emplace_back(p.out[o].type, r.outputs[o].bytes(), shift);
      out.push_back(in_place ? const_cast<void*>(in[o]) : spaces.back().at);
    }
    deft::ext::kernel_call call{in.data(), out.data(), nullptr};
    spaces.emplace_back(dtype::int64, p.compiled->scratch(), 0);
    call.scratch = spaces.back().at;
    for (const auto& l : p.compiled->launches(call, {&r.record, 5})) {
      r.kernel = l.kernel;
      const std::vector<std::uint64_t> words(l.arguments.begin(), l.arguments.end());
      if (argument_words(i) != words.size())
        deft::ext::fail(deft::errc::internal, "arguments of another size");
      launch(i, l.kernel, words.data(), l.blocks, l.threads);
    }
    for (std::size_t o = 0; o < out.size(); ++o)
      std::memcpy(r.outputs[o].mutable_raw(), out[o], r.outputs[o].bytes());
    for (const auto& s : spaces) s.check();
    return r;
  }

  /// The size of the structure that the source of program i declares.
  std::size_t argument_words(std::size_t i) const {
    return library_->find<unsigned()>(deft::ext::str("size", i))() / 8;
  }
  void launch(std::size_t i, const std::string& kernel, const void* argument, unsigned blocks,
              unsigned threads) const {
    library_->find<void(const void*, unsigned, unsigned)>(deft::ext::str(kernel, i))(
        argument, blocks, threads);
  }

 private:
  /// Bytes between guard bytes that must not be written.
  struct space {
    std::unique_ptr<char[]> whole;
    std::size_t bytes, size;
    char* at;

    space(dtype t, std::size_t n, std::size_t shift)
        : whole(new char[n + 192]), bytes(n + 192), size(n) {
      std::memset(whole.get(), 0x5a, bytes);
      const auto address = reinterpret_cast<std::uintptr_t>(whole.get()) + 64;
      at = whole.get() + 64 + (64 - address % 64) % 64 + shift * deft::ext::size_of_dtype(t);
    }
    void check() const {
      for (const char* p = whole.get(); p < whole.get() + bytes; ++p)
        if ((p < at || p >= at + size) && *p != 0x5a)
          deft::ext::fail(deft::errc::internal, "written outside of an array");
    }
  };
  std::unique_ptr<host_library> library_;
};

}  // namespace testing
