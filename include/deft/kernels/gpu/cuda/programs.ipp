// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/programs.ipp: programs that NVRTC has compiled, loaded and launched.
#pragma once
#include <deft/core/log.hpp>
#include <deft/kernels/gpu/compilations.hpp>
#include <deft/kernels/gpu/compiled_program.hpp>
#include <deft/kernels/gpu/cuda/queues.ipp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/gpu/cuda/tables.hpp>
#include <deft/kernels/gpu/node_program.hpp>
#include <deft/kernels/gpu/nvrtc.hpp>
#include <deft/kernels/gpu/registered.hpp>
#include <deft/kernels/user_op.hpp>

namespace deft::ext::gpu::cuda {
namespace {

/// Functions of cuda.h, declared anew: handles are pointers, a CUresult has cudaError_t's numbers.
/// The runtime knows where they are: nothing is linked with the driver.
struct driver_functions {
  int (*load)(void** module, const void* image) = nullptr;
  int (*unload)(void* module) = nullptr;
  int (*find)(void** function, void* module, const char* name) = nullptr;
  int (*launch)(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x,
                unsigned threads_y, unsigned threads_z, unsigned shared, cudaStream_t on,
                void** arguments, void** extra) = nullptr;

  driver_functions() {
    get("cuModuleLoadData", load);
    get("cuModuleUnload", unload);
    get("cuModuleGetFunction", find);
    get("cuLaunchKernel", launch);
  }

 private:
  template <class F>
  static void get(const char* name, F& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
    check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
          "to find the driver's functions");
#else
    check(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result),
          "to find the driver's functions");
#endif
    if (!found) fail(errc::unimplemented, "the GPU driver lacks ", name);
    function = reinterpret_cast<F>(found);
  }
};
const driver_functions& driver() {
  static const driver_functions functions;
  return functions;
}

/// A source's code on one GPU, which may not be there yet.
class loaded_code {
 public:
  loaded_code(std::shared_ptr<queues> q, std::span<const char* const> kernels)
      : queues_(std::move(q)) {
    for (const char* name : kernels) kernels_.push_back({name, nullptr});
  }
  loaded_code(const loaded_code&) = delete;
  ~loaded_code() {
    if (!module_) return;
    try {
      queues_->attempt([&] {
        cudaStreamSynchronize(queues_->compute());
        driver().unload(module_);
      });
    } catch (const error&) {  // the process is ending
    }
  }

  /// Loads all kernels: a launch has nothing to load, and can be captured.
  void load(const compilation& c) {
    try_to_load(c);
    ended_.store(true, std::memory_order_release);
    ended_.notify_all();
  }
  bool ready() const { return ready_.load(std::memory_order_acquire); }
  /// Until it is ready, or never will be.
  void wait() const { ended_.wait(false, std::memory_order_acquire); }
  void launch(const program_launch& l, cudaStream_t on) const {
    const auto k = std::ranges::find_if(
        kernels_, [&](const kernel& one) { return std::strcmp(one.name, l.kernel) == 0; });
    void* arguments[] = {const_cast<std::uint64_t*>(l.arguments.data())};
    call(driver().launch(k->function, l.blocks, 1, 1, l.threads, 1, 1, 0, on, arguments, nullptr),
         "to start a program");
  }

 private:
  void try_to_load(const compilation& c) {
    if (c.failure()) return;  // which was said
    try {
      queues_->attempt([&] {
        call(driver().load(&module_, c.bytes().c_str()), "to load a program");
        for (auto& k : kernels_)
          call(driver().find(&k.function, module_, k.name), "to find a program's kernel");
        ready_.store(true, std::memory_order_release);
        queues_->note_code();
      });
    } catch (const error& e) {
      logging::warning("a program runs an instruction at a time on GPU ", queues_->number(), ": ",
                       e.what());
    }
  }
  struct kernel {
    const char* name;
    void* function;
  };
  static void call(int said, const char* doing) { check(static_cast<cudaError_t>(said), doing); }

  const std::shared_ptr<queues> queues_;
  std::vector<kernel> kernels_;
  void* module_ = nullptr;
  std::atomic<bool> ready_{false}, ended_{false};
};

/// The code of one GPU's programs, by their source.
class program_codes {
 public:
  program_codes(std::shared_ptr<queues> q, std::string architecture)
      : queues_(std::move(q)), architecture_(std::move(architecture)) {}

  /// Of a program that is supported: asks for its code, the first time.
  std::shared_ptr<const loaded_code> find(const compiled_program& p) {
    std::vector<std::shared_ptr<loaded_code>> unused;  // dropped without the lock
    std::unique_lock lock(guard_);
    auto& found = known_[p.source()];
    if (found) return found;
    const auto made = found = std::make_shared<loaded_code>(queues_, p.kernels());
    // A server may see any number of programs.
    if (known_.size() > most_known)
      std::erase_if(known_, [&](auto& k) {
        if (k.second.use_count() > 1) return false;
        unused.push_back(std::move(k.second));
        return true;
      });
    lock.unlock();
    compilations()
        .ask(p.source(), architecture_)
        ->then([to = std::weak_ptr(made)](const compilation& c) {
          if (const auto l = to.lock()) l->load(c);
        });
    return made;
  }

 private:
  /// Then those that no kernel holds are forgotten.
  static constexpr std::size_t most_known = 1024;

  const std::shared_ptr<queues> queues_;
  const std::string architecture_;
  std::mutex guard_;
  std::unordered_map<std::string, std::shared_ptr<loaded_code>> known_;
};

/// Runs a program as one kernel, once its code is there; until then, and where there will be none,
/// by a kernel that runs an instruction at a time.
class compiled_kernel final : public kernel {
 public:
  compiled_kernel(kernel_ptr steps, const node_program& p, std::shared_ptr<program_codes> codes)
      : steps_(std::move(steps)),
        compiled_(*p.program, p.literals, {p.late, p.update}),
        codes_(std::move(codes)) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    compiled_.prepare(in, out);
    code_ = compiled_.supported() ? codes_->find(compiled_) : nullptr;
    if (!is_compiled()) steps_->prepare(in, out);
  }
  /// The code may come before the run: what is asked for is enough for both.
  std::size_t scratch() const override {
    return is_compiled() ? compiled_.scratch() : std::max(compiled_.scratch(), steps_->scratch());
  }
  double cost() const override { return steps_->cost(); }
  void run(const kernel_call& c) override {
    if (!is_compiled()) return steps_->run(c);
    const auto& s = *static_cast<const stream*>(c.stream);
    for (const auto& l : compiled_.launches(c, s.faults())) code_->launch(l, s.native());
  }

 private:
  bool is_compiled() const { return code_ && code_->ready(); }

  const kernel_ptr steps_;
  compiled_program compiled_;
  const std::shared_ptr<program_codes> codes_;
  std::shared_ptr<const loaded_code> code_;
};

/// Runs an elementwise operation of the program's own, of which there is nothing but its source:
/// what prepares it waits for the code, once for each GPU.
class source_kernel final : public kernel {
 public:
  source_kernel(const op_def& op, const program& p, std::shared_ptr<program_codes> codes)
      : name_(op.name), compiled_(p, {}, {.update = true}), codes_(std::move(codes)) {}

  void prepare(std::span<const tensor_type> in, std::span<const tensor_type> out) override {
    compiled_.prepare(in, out);
    code_ = nullptr;
    if (out[0].shape.elements() == 0) return;
    if (compiled_.supported()) {
      code_ = codes_->find(compiled_);
      code_->wait();
    }
    if (!code_ || !code_->ready())
      fail(errc::unimplemented, "[", name_,
           "] could not be compiled for this GPU, as the log says; ",
           "use it in a .cu file, or on the processor");
  }
  void run(const kernel_call& c) override {
    if (!code_) return;
    const auto& s = *static_cast<const stream*>(c.stream);
    for (const auto& l : compiled_.launches(c, s.faults())) code_->launch(l, s.native());
  }

 private:
  const std::string_view name_;
  compiled_program compiled_;
  const std::shared_ptr<program_codes> codes_;
  std::shared_ptr<const loaded_code> code_;
};

/// The codes of the GPU that this thread makes kernels for.
thread_local const std::shared_ptr<program_codes>* codes_at_hand = nullptr;
/// Sets them.
class making_kernels {
 public:
  explicit making_kernels(const std::shared_ptr<program_codes>& of)
      : before_(std::exchange(codes_at_hand, &of)) {}
  ~making_kernels() { codes_at_hand = before_; }
  making_kernels(const making_kernels&) = delete;

 private:
  const std::shared_ptr<program_codes>* const before_;
};

bool has_source(const op_def& op) { return op.functions && op.functions->source; }

kernel_ptr make_from_source(const op_def& op, std::span<const dtype> operands, dtype result) {
  program_builder b;
  std::vector<program_builder::value> in;
  for (dtype t : operands) in.push_back(b.input(t));
  b.apply(op, result, in);
  return std::make_unique<source_kernel>(op, *b.finish(), *codes_at_hand);
}
kernel_ptr make_node_from_source(const node_def& n, std::span<const tensor_type> in) {
  std::vector<dtype> operands;
  for (const auto& t : in) operands.push_back(t.type);
  return make_from_source(*n.op, operands, n.outputs.at(0).type);
}
kernel_ptr make_element_from_source(const op_def& op, dtype operand, dtype result) {
  if (!codes_at_hand || !has_source(op)) return nullptr;
  std::vector<tensor_type> in(static_cast<std::size_t>(op.min_inputs), {dims{}, operand}), out;
  try {
    infer_types(op, {in, {}}, out);
  } catch (const error&) {  // one that selects
    in[0].type = dtype::boolean;
  }
  std::vector<dtype> operands;
  for (const auto& t : in) operands.push_back(t.type);
  return make_from_source(op, operands, result);
}

/// Operations of the program's own that nvcc has not seen, and whose source NVRTC can compile, for
/// the dtypes that the processor runs them on.
kernel_table source_kernels() {
  static const auto& table = *new std::vector<kernel_entry>([] {
    const auto compiled = registered_operations(kernels_of::cuda);
    std::vector<kernel_entry> made;
    for (const auto& e : user_kernel_lines()) {
      const op_def* op = find_op(e.op);
      if (op && has_source(*op) &&
          std::ranges::none_of(compiled, [&](const auto& c) { return c.first == op; }))
        made.push_back({e.op, e.types, &make_node_from_source});
    }
    if (made.empty() || has_nvrtc()) {
      other_elements() = &make_element_from_source;
      return made;
    }
    logging::info("operations of the program's own run on the processor: there is no libnvrtc");
    return std::vector<kernel_entry>();
  }());
  return table;
}
/// All kernels of CUDA's GPUs.
std::vector<kernel_table> all_kernels() {
  const auto compiled = kernel_tables();
  std::vector<kernel_table> all(compiled.begin(), compiled.end());
  all.push_back(source_kernels());
  return all;
}

}  // namespace
}  // namespace deft::ext::gpu::cuda
