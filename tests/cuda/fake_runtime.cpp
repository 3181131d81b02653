// SPDX-License-Identifier: Apache-2.0
#include "fake_runtime.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

// Never destroyed: streams of a GPU that has stopped are left as they are.
auto& guard = *new std::mutex;
auto& changed = *new std::condition_variable;
bool held = false;
auto& pieces = *new std::map<void*, std::size_t>;
/// Names of kernels by their host functions, which register themselves before main.
std::map<const void*, std::string>& kernels() {
  static auto& k = *new std::map<const void*, std::string>;
  return k;
}

}  // namespace

struct CUgraph_st {
  std::vector<std::function<void()>> work;
};
struct CUgraphExec_st : CUgraph_st {};
struct CUstream_st {
  std::deque<std::function<void()>> work;
  CUgraph_st* captured = nullptr;
  bool busy = false, over = false;
  std::thread thread{[this] { run(); }};

  void run() {
    std::unique_lock lock(guard);
    for (;;) {
      changed.wait(lock, [&] { return over || (!held && !work.empty()); });
      if (work.empty()) return;
      auto f = std::move(work.front());
      work.pop_front();
      busy = true;
      lock.unlock();
      f();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};
struct CUevent_st {
  std::shared_ptr<bool> done = std::make_shared<bool>(true);
};
struct CUmemPoolHandle_st {};

namespace fake {

state& runtime() {
  static auto& s = *new state;
  return s;
}
void hold() {
  std::lock_guard lock(guard);
  held = true;
}
void go_on() {
  std::lock_guard lock(guard);
  held = false;
  changed.notify_all();
}
void stop(cudaError_t why) {
  std::lock_guard lock(guard);
  runtime().broken = why;
  changed.notify_all();
}
void push(cudaStream_t on, std::function<void()> work) {
  std::lock_guard lock(guard);
  if (on->captured) return on->captured->work.push_back(std::move(work));
  on->work.push_back(std::move(work));
  changed.notify_all();
}

}  // namespace fake

namespace {

cudaError_t answer() {
  std::lock_guard lock(guard);
  return fake::runtime().broken;
}
template <class F>
cudaError_t queued(cudaStream_t on, F f) {
  if (!on) return cudaErrorNotSupported;
  if (auto e = answer()) return e;
  fake::push(on, [=] {
    if (answer() == cudaSuccess) f();
  });
  return cudaSuccess;
}

}  // namespace

extern "C" {

// What compiled kernels call.
void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char* name, const char*, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  kernels()[host] = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3, dim3, std::size_t, void*) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

cudaError_t cudaLaunchKernel(const void* f, dim3, dim3, void** arguments, std::size_t,
                             cudaStream_t on) {
  if (auto e = fake::runtime().starting) return e;
  // for_each<run_of_units<Unit>>, of one run
  const std::string& name = kernels()[f];
  const std::string_view what = "run_of_unitsI";
  const auto at = name.find(what);
  if (at == std::string::npos) {
    const auto run = fake::runtime().kernel;
    return run && run(name, arguments, on) ? answer() : cudaErrorNotSupported;
  }
  const char unit = name[at + what.size()];
  const std::size_t width = unit == 'h' ? 1 : unit == 'j' ? 4 : unit == 'm' ? 8 : 16;
  struct copied {
    const void* from;
    void* to;
  } c;
  std::memcpy(&c, arguments[2], sizeof c);
  const auto bytes = static_cast<std::size_t>(*static_cast<std::int64_t*>(arguments[1])) * width;
  auto* const failed = *static_cast<const unsigned**>(arguments[0]);
  return queued(on, [=] {
    if (!failed || !*failed) std::memcpy(c.to, c.from, bytes);
  });
}

// The driver's, as far as it loads code.
static int load_module(void** module, const void* image) {
  std::unique_lock lock(guard);
  changed.wait(lock, [] { return !held; });
  const bool cubin = std::memcmp(image,
                                 "\x7f"
                                 "ELF",
                                 4) == 0;
  if (!cubin && !std::strstr(static_cast<const char*>(image), ".visible .entry"))
    return cudaErrorInvalidKernelImage;
  if (auto e = fake::runtime().loading) return e;
  ++fake::runtime().loaded;
  *module = new std::set<std::string>;
  return cudaSuccess;
}
static int unload_module(void* module) {
  std::lock_guard lock(guard);
  ++fake::runtime().unloaded;
  delete static_cast<std::set<std::string>*>(module);
  return cudaSuccess;
}
static int find_function(void** function, void* module, const char* name) {
  *function =
      const_cast<std::string*>(&*static_cast<std::set<std::string>*>(module)->emplace(name).first);
  return cudaSuccess;
}
static int launch_function(void* function, unsigned x, unsigned, unsigned, unsigned threads,
                           unsigned, unsigned, unsigned, cudaStream_t on, void** arguments,
                           void**) {
  return queued(on, fake::runtime().program(
                        {*static_cast<std::string*>(function), x, threads, arguments[0]}));
}
static cudaError_t find_driver_function(const char* name, void** f) {
  *f = nullptr;
  const std::pair<const char*, void*> all[] = {
      {"cuModuleLoadData", reinterpret_cast<void*>(&load_module)},
      {"cuModuleUnload", reinterpret_cast<void*>(&unload_module)},
      {"cuModuleGetFunction", reinterpret_cast<void*>(&find_function)},
      {"cuLaunchKernel", reinterpret_cast<void*>(&launch_function)},
  };
  for (const auto& [known, at] : all)
    if (std::strcmp(known, name) == 0) *f = at;
  return cudaSuccess;
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned,
                                             unsigned long long, cudaDriverEntryPointQueryResult*) {
  return find_driver_function(name, f);
}
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** f, unsigned long long,
                                    cudaDriverEntryPointQueryResult*) {
  return find_driver_function(name, f);
}
#endif

cudaError_t cudaGetDeviceCount(int* n) {
  if (fake::runtime().gpus == 0) return cudaErrorNoDevice;
  *n = fake::runtime().gpus;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
  *v = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::strcpy(p->name, "Fake GPU");
  p->major = fake::runtime().major;
  p->minor = fake::runtime().minor;
  p->totalGlobalMem = std::size_t{80} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* to, int, int device) {
  std::strcpy(to, ("0000:0" + std::to_string(device) + ":00.0").c_str());
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  std::lock_guard lock(guard);
  fake::runtime().contexts.insert(device);
  return fake::runtime().broken;
}
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) {
  *v = a == cudaDevAttrComputeCapabilityMajor   ? 9
       : a == cudaDevAttrComputeCapabilityMinor ? 0
       : a == cudaDevAttrMultiProcessorCount    ? 132
                                                : 1;
  return cudaSuccess;
}
// What CUB asks.
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void*) {
  *a = {};
  a->ptxVersion = a->binaryVersion = 90;
  a->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* n, const void*, int,
                                                                   std::size_t, unsigned) {
  *n = 2;
  return cudaSuccess;
}
cudaError_t cudaPeekAtLastError() { return cudaErrorNotSupported; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t e) {
  return e == cudaErrorIllegalAddress ? "cudaErrorIllegalAddress" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t) { return "something happened"; }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  *s = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  if (auto e = answer()) return e;
  s->captured = new CUgraph_st;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  *g = std::exchange(s->captured, nullptr);
  if (auto e = answer()) return e;
  return fake::runtime().captures ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  *e = new CUgraphExec_st{*g};
  ++fake::runtime().graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete g;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  delete e;
  --fake::runtime().graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
  if (auto r = answer()) return r;
  ++fake::runtime().replays;
  for (const auto& f : e->work) fake::push(s, f);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  std::unique_lock lock(guard);
  ++fake::runtime().waits;
  changed.wait(lock, [&] { return s->work.empty() && !s->busy; });
  return fake::runtime().broken;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t on, cudaStreamCaptureStatus* s) {
  *s = on->captured || fake::runtime().capturing ? cudaStreamCaptureStatusActive
                                                 : cudaStreamCaptureStatusNone;
  return answer();
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  {
    std::lock_guard lock(guard);
    s->over = true;
    changed.notify_all();
  }
  s->thread.join();
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  return queued(s, [done = e->done] {
    std::unique_lock lock(guard);
    changed.wait(lock, [&] { return *done; });
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  if (auto r = answer()) return r;
  auto done = std::make_shared<bool>(false);
  e->done = done;
  fake::push(s, [done] {
    std::lock_guard lock(guard);
    *done = true;
    changed.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  std::lock_guard lock(guard);
  if (fake::runtime().broken) return fake::runtime().broken;
  return *e->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  std::unique_lock lock(guard);
  ++fake::runtime().waits;
  changed.wait(lock, [&] { return *e->done || fake::runtime().broken; });
  return fake::runtime().broken;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, std::size_t n) {
  *p = std::malloc(n);
  return answer();
}
cudaError_t cudaFree(void* p) {
  std::free(p);
  std::lock_guard lock(guard);
  ++fake::runtime().waits;
  return fake::runtime().broken;
}
cudaError_t cudaHostAlloc(void** p, std::size_t n, unsigned) { return cudaMalloc(p, n); }
cudaError_t cudaHostRegister(void* p, std::size_t, unsigned) {
  std::lock_guard lock(guard);
  ++fake::runtime().pinnings;
  return fake::runtime().pinned.insert(p).second ? cudaSuccess
                                                 : cudaErrorHostMemoryAlreadyRegistered;
}
cudaError_t cudaHostUnregister(void* p) {
  std::lock_guard lock(guard);
  return fake::runtime().pinned.erase(p) ? cudaSuccess : cudaErrorHostMemoryNotRegistered;
}
cudaError_t cudaFreeHost(void* p) { return cudaFree(p); }
cudaError_t cudaHostGetDevicePointer(void** to, void* p, unsigned) {
  *to = p;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  *free = fake::runtime().free, *all = std::size_t{80} << 30;
  return cudaSuccess;
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* p, const cudaMemPoolProps*) {
  *p = new CUmemPoolHandle_st;
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t p) {
  delete p;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, std::size_t) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }
cudaError_t cudaMallocFromPoolAsync(void** p, std::size_t n, cudaMemPool_t, cudaStream_t) {
  if (const auto before = fake::runtime().allocating) before();
  if (auto e = answer()) return e;
  if (n > fake::runtime().free) return cudaErrorMemoryAllocation;
  *p = std::aligned_alloc(256, n);
  std::lock_guard lock(guard);
  pieces[*p] = n;
  fake::runtime().in_pools += n;
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t on) {
  {
    std::lock_guard lock(guard);
    fake::runtime().in_pools -= pieces[p];
    pieces.erase(p);
  }
  fake::push(on, [p] { std::free(p); });
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t n, cudaMemcpyKind,
                            cudaStream_t on) {
  return queued(on, [=] { std::memcpy(to, from, n); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t n,
                                cudaStream_t on) {
  return cudaMemcpyAsync(to, from, n, cudaMemcpyDefault, on);
}
cudaError_t cudaMemsetAsync(void* to, int v, std::size_t n, cudaStream_t on) {
  return queued(on, [=] { std::memset(to, v, n); });
}

}  // extern "C"
