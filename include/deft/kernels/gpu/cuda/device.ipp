// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/device.ipp: CUDA's GPUs. Host code, for any compiler.
#pragma once
#include <algorithm>
#include <bit>
#include <deft/core/log.hpp>
#include <deft/kernels/gpu/cuda/cublaslt.ipp>
#include <deft/kernels/gpu/cuda/cudnn.ipp>
#include <deft/kernels/gpu/cuda/graph.ipp>
#include <deft/kernels/gpu/cuda/memory.ipp>
#include <deft/kernels/gpu/cuda/pinned.ipp>
#include <deft/kernels/gpu/cuda/programs.ipp>
#include <deft/kernels/gpu/cuda/queues.ipp>
#include <deft/kernels/gpu/cuda/runtime.ipp>
#include <deft/kernels/gpu/cuda/stream.hpp>
#include <deft/kernels/gpu/cuda/tables.hpp>
#include <deft/kernels/gpu/devices.hpp>
#include <deft/kernels/gpu/fault.ipp>
#include <deft/kernels/gpu/registered.hpp>

namespace deft::ext::gpu::cuda {

namespace {

/// Nothing that was compiled for a kernel runs on this thread's GPU.
[[noreturn]] void no_code(std::span<const int> compiled_for) {
  cudaGetLastError();
  int gpu = 0, major = 0, minor = 0;
  check(cudaGetDevice(&gpu), "to be asked");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu), "to be asked");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu), "to be asked");
  fail(errc::failed_precondition, "the kernel was compiled for compute capability ",
       join(compiled_for, ", ", [](int a) { return str(a / 100, ".", a / 10 % 10); }),
       ", and the GPU has ", major, ".", minor, "; add ", major, minor,
       " to the CUDA_ARCHITECTURES of the target that its .cu file belongs to, or to "
       "DEFT_CUDA_ARCHITECTURES if it is one of deft's own");
}

}  // namespace

void stream::start(const void* kernel, std::int64_t blocks, unsigned threads, void** arguments,
                   std::span<const int> compiled_for) {
  if (blocks > INT32_MAX)
    fail(errc::invalid_argument, "too many elements for one kernel of a GPU: ", blocks,
         " blocks of ", threads, " (limit ", INT32_MAX, ")");
  const cudaError_t said = cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                                            dim3(threads), arguments, 0, on_);
  if (said == cudaErrorNoKernelImageForDevice || said == cudaErrorUnsupportedPtxVersion)
    no_code(compiled_for);
  cuda::check(said, "to start a kernel");
}

void stream::check(int said, const char* doing) {
  cuda::check(static_cast<cudaError_t>(said), doing);
}

namespace {

/// The faults of a frame's runs.
class step final : public device_step {
 public:
  explicit step(std::shared_ptr<queues> q) : queues_(std::move(q)) {}
  ~step() override {
    queues_->log().forget(this);
    give();
  }

  void begin() override {
    updated_ = false;
    if (slot_.mirror && !is_taken()) return;
    give();
    queues_->attempt([&] {
      queues_->drop_kept();
      slot_ = queues_->take_slot();
    });
  }
  std::shared_ptr<const error> failure(std::uint32_t& item) const override {
    if (auto e = queues_->log().failure(this, item)) return e;
    if (!slot_.mirror || !is_taken()) return nullptr;
    item = slot_.mirror->item;
    return std::make_shared<const error>(error_of(*slot_.mirror));
  }
  bool has_updated() const override { return updated_; }
  const void* block_address() const override { return slot_.on_device; }
  const fault_slot& slot() const { return slot_; }
  /// Something that changes variables is about to be queued.
  void note_update() { updated_ = true; }

 private:
  bool is_taken() const { return std::atomic_ref(slot_.mirror->taken).load() != 0; }
  void give() {
    if (slot_.mirror) queues_->give_slot(std::exchange(slot_, {}));
  }

  const std::shared_ptr<queues> queues_;
  fault_slot slot_;
  std::atomic<bool> updated_{false};  ///< in this run
};

class device final : public device_runtime {
 public:
  device(device_info info, int number, std::string architecture, bool allow_tf32,
         std::size_t memory_limit)
      : device_runtime(std::move(info)),
        queues_(std::make_shared<queues>(number)),
        codes_(std::make_shared<program_codes>(queues_, std::move(architecture))),
        memory_(std::make_shared<device_memory>(queues_, this->info(), memory_limit)),
        products_(queues_, memory_, allow_tf32),
        convolutions_(queues_, memory_, allow_tf32) {}
  ~device() override {
    if (!queues_->is_used()) return;
    queues_->attempt([&] {
      for (auto s : {queues_->in(), queues_->out(), queues_->across(), queues_->compute()})
        cudaStreamSynchronize(s);
    });
    queues_->drop_kept();
  }

  bool asynchronous() const override { return true; }
  memory& space() override { return *memory_; }
  arena_pool& arenas() override { return arenas_; }

  event_ptr copy_in(void* to, const void* from, std::size_t bytes, buffer keep) override {
    if (bytes == 0) return nullptr;
    return queues_->attempt([&] {
      queues_->drop_kept();
      buffer staging;
      if (bytes <= most_staged) {
        staging = buffer(pinned().allocate(bytes));
        std::memcpy(staging.data(), from, bytes);
        from = staging.data();
        keep.reset();
      } else {
        pinned_mappings::all().use(from, bytes);
      }
      const cudaStream_t on = copy(queues_->in(), to, from, bytes, cudaMemcpyHostToDevice);
      auto done = std::make_shared<event>(queues_, on);
      done->hold(std::move(keep));
      done->unpack(std::move(staging));
      return done;
    });
  }
  event_ptr copy_out(void* to, const void* from, std::size_t bytes, buffer keep) override {
    if (bytes == 0) return nullptr;
    return queues_->attempt([&] {
      queues_->drop_kept();
      buffer staging;
      if (bytes <= most_staged)
        staging = buffer(pinned().allocate(bytes));
      else
        pinned_mappings::all().use(to, bytes);
      void* const into = staging ? staging.data() : to;
      const cudaStream_t on = copy(queues_->out(), into, from, bytes, cudaMemcpyDeviceToHost);
      auto done = std::make_shared<event>(queues_, on);
      done->hold(std::move(keep));
      if (staging) done->unpack(std::move(staging), to, bytes);
      return done;
    });
  }
  bool copy_between(void* to, device_runtime& source, const void* from, std::size_t bytes,
                    buffer keep, std::span<const event_ptr> after, event_ptr& done) override {
    auto* other = dynamic_cast<device*>(&source);
    if (!other || !reaches(*other)) return false;
    if (bytes == 0) return true;
    const cudaStream_t on = queues_->attempt([&] { return queues_->across(); });
    for (const auto& e : after) queue_wait(on, e);
    done = queues_->attempt([&] {
      queues_->order(on, queues_->compute());
      check(cudaMemcpyPeerAsync(to, queues_->number(), from, other->queues_->number(), bytes, on),
            "to copy from another GPU");
      auto e = std::make_shared<event>(queues_, on);
      e->hold(std::move(keep));
      return e;
    });
    return true;
  }
  void copy_within(void* to, const void* from, std::size_t bytes, device_step* of) override {
    if (bytes == 0) return;
    queues_->attempt([&] {
      if (!of) {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, queues_->compute()),
              "to copy");
        return;
      }
      static_cast<step*>(of)->note_update();
      stream s = stream_of(of, 0, true, queues_->compute());
      copy_unless_failed(s, to, from, bytes);
    });
  }

  const kernel_entry* find_kernel(std::string_view op) const override {
    static const auto& kernels = *new kernel_index(all_kernels());
    return kernels.find(op);
  }
  kernel_ptr make_kernel(const node_def& n, std::span<const tensor_type> in) override {
    const making_kernels now(codes_);
    kernel_ptr made = device_runtime::make_kernel(n, in);
    const auto p = program_of(n, in);
    if (!made || !p) return made;
    if (p->update ? has_formula(*p->program)
                  : make_registered(kernels_of::cuda, *p->program, p->literals) != nullptr)
      return made;
    return std::make_unique<compiled_kernel>(std::move(made), *p, codes_);
  }
  std::unique_ptr<device_step> make_step() override { return std::make_unique<step>(queues_); }
  void launch(const launch_request& r, device_step* of) override {
    queues_->attempt([&] {
      if (r.update) static_cast<step*>(of)->note_update();
      try {
        start(r, of, queues_->compute());
      } catch (...) {
        queues_->log().add(of, {&r.item, 1});
        throw;
      }
      queues_->log().add(of, {&r.item, 1});
    });
  }
  std::unique_ptr<launch_graph> capture(std::span<const launch_request> launches,
                                        device_step* of) override {
    return queues_->attempt([&]() -> std::unique_ptr<launch_graph> {
      try {
        capturing now(*queues_);
        std::vector<std::uint32_t> items;
        for (const auto& r : launches) {
          start(r, of, now.stream());
          items.push_back(r.item);
        }
        const bool updates = std::ranges::any_of(launches, &launch_request::update);
        return std::make_unique<graph>(queues_, now.finish(), std::move(items), updates);
      } catch (const failed_call& e) {
        if (is_sticky(e.code)) throw;
        logging::warning(to_string(*info().name), " launches ", launches.size(),
                         " kernels one by one: ", e.message());
        return nullptr;
      }
    });
  }
  void launch(launch_graph& g, device_step* of) override {
    const auto& all = static_cast<graph&>(g);
    queues_->attempt([&] {
      if (all.updates()) static_cast<step*>(of)->note_update();
      check(cudaGraphLaunch(all.native(), queues_->compute()), "to start a graph");
      queues_->log().add(of, all.items());
    });
  }
  std::uint64_t code_version() const override { return queues_->code_version(); }
  event_ptr record() override {
    if (!queues_->is_used()) return nullptr;
    return queues_->attempt([&] { return std::make_shared<event>(queues_, queues_->compute()); });
  }
  void wait(const event_ptr& e) override { queue_wait(queues_->compute(), e); }

 private:
  void queue_wait(cudaStream_t on, const event_ptr& e) {
    if (!e || e->done()) return;
    auto* const own = dynamic_cast<event*>(e.get());
    if (!own || own->needs_host()) return e->synchronize();
    queues_->attempt([&] {
      if (!own->is_on(on)) check(cudaStreamWaitEvent(on, own->native(), 0), "to order streams");
    });
  }

  /// Bytes of host memory up to which a copy goes by way of memory that is pinned: from memory that
  /// is not, the runtime would block the caller. Larger blocks are pinned where they are.
  static constexpr std::size_t most_staged = std::size_t{4} << 20;
  /// Bytes up to which a copy is queued among the kernels: quicker than to order two streams.
  static constexpr std::size_t most_in_line = std::size_t{64} << 10;

  stream stream_of(device_step* of, std::uint32_t item, bool update, cudaStream_t on) {
    const fault_slot& s = static_cast<step*>(of)->slot();
    return {on,
            {s.on_device, item},
            update ? &s.on_device->taken : nullptr,
            {&products_, &convolutions_}};
  }
  void start(const launch_request& r, device_step* of, cudaStream_t on) {
    stream s = stream_of(of, r.item, r.update, on);
    kernel_call call = r.call;
    call.stream = &s;
    r.what.run(call);
  }
  /// Queues a copy after all that was launched; the stream that it is on.
  cudaStream_t copy(cudaStream_t on, void* to, const void* from, std::size_t bytes,
                    cudaMemcpyKind kind) {
    if (bytes <= most_in_line)
      on = queues_->compute();
    else
      queues_->order(on, queues_->compute());
    check(cudaMemcpyAsync(to, from, bytes, kind, on), "to copy");
    return on;
  }
  /// Whether the hardware copies from that GPU to this one.
  bool reaches(device& source) {
    const int here = queues_->number(), there = source.queues_->number();
    if (here == there) return true;
    std::lock_guard lock(guard_);
    auto [at, first] = reached_.try_emplace(source.queues_.get(), false);
    if (!first) return at->second;
    int can = 0;
    if (cudaDeviceCanAccessPeer(&can, here, there) != cudaSuccess) cudaGetLastError(), can = 0;
    return at->second = can && queues_->attempt([&] {
      source.queues_->use();
      if (cudaMemPool_t pool = source.queues_->pool()) {
        cudaMemAccessDesc access{};
        access.location = {cudaMemLocationTypeDevice, here};
        access.flags = cudaMemAccessFlagsProtReadWrite;
        check(cudaMemPoolSetAccess(pool, &access, 1), "to let another GPU in");
      }
      queues_->use();
      return true;
    });
  }

  const std::shared_ptr<queues> queues_;
  const std::shared_ptr<program_codes> codes_;
  const std::shared_ptr<device_memory> memory_;
  arena_pool arenas_{*memory_};
  cublaslt_products products_;
  cudnn_convolutions convolutions_;
  std::mutex guard_;
  std::unordered_map<const queues*, bool> reached_;
};

/// Those that the driver shows; none without a driver, or GPUs.
int count_gpus() {
  int count = 0;
  const cudaError_t e = cudaGetDeviceCount(&count);
  if (e == cudaSuccess) return count;
  cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError(), driver = 0;
  if (driver && e != cudaErrorNoDevice)
    logging::warning("GPUs are not used: the driver, for CUDA ", driver / 1000, ".",
                     driver % 1000 / 10, ", says: ", text_of(e));
  return 0;
}

}  // namespace

std::vector<std::unique_ptr<device_runtime>> make_devices(const device_name& task, bool allow_tf32,
                                                          double memory_limit) {
  std::vector<std::unique_ptr<device_runtime>> all;
  const int count = count_gpus();
  if (count == 0) return all;
  compilations();  // so that the end of the process waits for them
  static const auto& kernels = *new auto(announce(all_kernels()));
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p{};
    if (const cudaError_t e = cudaGetDeviceProperties(&p, i); e != cudaSuccess) {
      cudaGetLastError();
      logging::warning("GPU ", i, " is not used: ", text_of(e));
      continue;
    }
    if (const int architecture = 10 * p.major + p.minor; architecture < DEFT_HAS_CUDA) {
      logging::warning("GPU ", i, ", ", p.name, ", is not used: its compute capability is ",
                       p.major, ".", p.minor, ", and the kernels are compiled for ",
                       DEFT_HAS_CUDA / 10, ".", DEFT_HAS_CUDA % 10,
                       " and later (DEFT_CUDA_ARCHITECTURES)");
      continue;
    }
    char bus_id[32] = "";
    if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, i) != cudaSuccess) cudaGetLastError();
    device_info info = describe(task, "gpu", static_cast<int>(all.size()));
    info.description = p.name;
    info.memory = p.totalGlobalMem;
    info.bus_id = bus_id;
    info.kernels = kernels;
    const std::size_t limit = limited_memory(memory_limit, p.totalGlobalMem);
    all.push_back(std::make_unique<device>(std::move(info), i, str("sm_", p.major, p.minor),
                                           allow_tf32, limit));
  }
  return all;
}

}  // namespace deft::ext::gpu::cuda
