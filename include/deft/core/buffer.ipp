// SPDX-License-Identifier: Apache-2.0
// deft/core/buffer.ipp: host memory. Fresh small pages cost 0.2 to 1.7 µs of faults per 4 KB, so
// blocks are recycled, and large ones ask for huge pages.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deft/core/buffer.hpp>
#include <deft/core/error.hpp>
#include <deft/core/growing_block.hpp>
#include <deft/core/host_mapping.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace deft {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t cache_line = 64;

// Medium blocks: the C library would return them to the system, and get fresh pages, each time.
// Their sizes are four for each power of two.
constexpr std::size_t smallest_medium = 1024;
constexpr std::size_t medium_sizes = 4 * 11;
constexpr std::size_t medium_cache_limit = std::size_t{64} << 20;

constexpr std::size_t whole_pages(std::size_t bytes) {
  return (bytes + huge_page - 1) / huge_page * huge_page;
}
constexpr std::size_t medium_size(std::size_t bytes) {
  const std::size_t step = std::bit_floor(bytes) / 4;
  return (bytes + step - 1) / step * step;
}
constexpr std::size_t number_of_medium(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 4;
  return 4 * static_cast<std::size_t>(std::countr_zero(4 * step / smallest_medium)) + size / step -
         4;
}
static_assert(number_of_medium(smallest_medium) == 0);
static_assert(number_of_medium(medium_size(huge_page / 8 * 7)) + 1 == medium_sizes);

/// AddressSanitizer reports uses of kept blocks.
void mark_unused([[maybe_unused]] const ext::block* b) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_POISON_MEMORY_REGION(b->data, b->capacity);
#endif
}
void mark_used([[maybe_unused]] const ext::block* b) {
#ifdef __SANITIZE_ADDRESS__
  ASAN_UNPOISON_MEMORY_REGION(b->data, b->capacity);
#endif
}

/// The number in a one-line file, or `otherwise`.
std::size_t number_in(const char* file, std::size_t otherwise) {
  std::FILE* f = std::fopen(file, "re");
  if (!f) return otherwise;
  unsigned long long n = 0;
  bool read = std::fscanf(f, "%llu", &n) == 1;
  std::fclose(f);
  return read ? static_cast<std::size_t>(n) : otherwise;
}

/// Bytes that could be written now without swapping, as far as the system reports it.
std::size_t available_memory() {
  std::FILE* f = std::fopen("/proc/meminfo", "re");
  if (!f) return SIZE_MAX;
  char line[128];
  unsigned long long kb = 0;
  bool found = false;
  while (!found && std::fgets(line, sizeof line, f))
    found = std::sscanf(line, "MemAvailable: %llu", &kb) == 1;
  std::fclose(f);
  return found ? static_cast<std::size_t>(kb) << 10 : SIZE_MAX;
}

/// Small and medium blocks are header and elements in one allocation; large ones are mapped.
class host_memory_t final : public ext::memory {
 public:
  ext::block* allocate(std::size_t bytes) override {
    if (bytes > std::size_t{1} << 46)
      ext::fail(errc::resource_exhausted, "cannot allocate ", bytes, " bytes");
    if (bytes + cache_line <= smallest_medium) return small(bytes);
    return medium_size(bytes) < huge_page ? medium(medium_size(bytes)) : large(bytes);
  }

  void release(ext::block* b) noexcept override {
    if (b->capacity < smallest_medium || !(b->capacity < huge_page ? keep_medium(b) : keep(b)))
      give_back(b);
  }

  void trim() {
    std::vector<ext::block*> all;
    {
      std::lock_guard lock(guard_);
      all.swap(kept_);
      kept_bytes_ = 0;
    }
    for (auto& k : medium_) {
      std::lock_guard lock(k.guard);
      for (ext::block* b : k.kept) kept_medium_bytes_ -= b->capacity;
      all.insert(all.end(), k.kept.begin(), k.kept.end());
      k.kept = {};
    }
    for (ext::block* b : all) give_back(b);
  }

  std::size_t kept() {
    std::lock_guard lock(guard_);
    return kept_bytes_ + kept_medium_bytes_;
  }

  ext::host_mapping find(const void* p) {
    std::lock_guard lock(guard_);
    auto at = mappings_.upper_bound(static_cast<const char*>(p));
    if (at == mappings_.begin()) return {};
    --at;
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(p) - at->first);
    if (offset >= at->second) return {};
    return {const_cast<char*>(at->first), at->second};
  }
  void on_unmap(void (*f)(const ext::host_mapping&) noexcept) { unmapping_ = f; }

  void set_limit(std::size_t bytes) {
    std::lock_guard lock(guard_);
    limit_ = bytes ? bytes : ext::physical_memory();
  }

  // For growing_block; sizes are multiples of huge_page.

  /// A kept block that fits; null if there is none.
  ext::block* recycled(std::size_t capacity) {
    std::lock_guard lock(guard_);
    // The most recently released one that fits and wastes at most a quarter.
    for (std::size_t i = kept_.size(); i-- > 0;) {
      ext::block* b = kept_[i];
      if (b->capacity < capacity || b->capacity > capacity + capacity / 4) continue;
      kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i));
      kept_bytes_ -= b->capacity;
      return again(b);
    }
    return nullptr;
  }
  /// Addresses without memory; null if there are none, or the memory could not be claimed now.
  void* reserve(std::size_t capacity) {
    if (!has_room(capacity)) trim();
    return has_room(capacity) ? map(capacity, PROT_NONE, MAP_NORESERVE) : nullptr;
  }
  /// Makes `bytes` more of what is reserved usable. False if that cannot be.
  bool claim(std::byte* at, std::size_t bytes, bool leaves_some) {
    if (try_claim(at, bytes, leaves_some)) return true;
    trim();
    return try_claim(at, bytes, leaves_some);
  }
  /// A block of what is reserved and claimed.
  ext::block* adopt(std::byte* p, std::size_t capacity) {
    std::unique_ptr<ext::block> b(large_block(p, capacity));
    std::lock_guard lock(guard_);
    mappings_.emplace(reinterpret_cast<const char*>(p), capacity);
    return b.release();
  }
  void abandon(std::byte* p, std::size_t capacity, std::size_t claimed) noexcept {
    {
      std::lock_guard lock(guard_);
      mapped_ -= claimed;
    }
    munmap(p, capacity);
  }
  [[noreturn]] void fail_to_allocate(std::size_t bytes) {
    ext::fail(errc::resource_exhausted, "cannot allocate ", bytes, " bytes; tensors have ",
              mapped(), " of ", limit());
  }

 private:
  std::size_t mapped() {
    std::lock_guard lock(guard_);
    return mapped_;
  }
  std::size_t limit() {
    std::lock_guard lock(guard_);
    return limit_;
  }

  bool keep(ext::block* b) {
    std::lock_guard lock(guard_);
    if (kept_bytes_ + b->capacity > ext::host_memory_cache_limit) return false;
    if (!add(kept_, b)) return false;
    kept_bytes_ += b->capacity;
    mark_unused(b);
    return true;
  }
  bool keep_medium(ext::block* b) {
    medium_blocks& of_size = medium_[number_of_medium(b->capacity)];
    std::lock_guard lock(of_size.guard);
    const std::size_t before = kept_medium_bytes_.fetch_add(b->capacity);
    if (before + b->capacity > medium_cache_limit || !add(of_size.kept, b)) {
      kept_medium_bytes_ -= b->capacity;
      return false;
    }
    mark_unused(b);
    return true;
  }
  /// Returns false if there is no memory to remember it.
  static bool add(std::vector<ext::block*>& kept, ext::block* b) noexcept {
    try {
      kept.push_back(b);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void give_back(ext::block* b) noexcept {
    mark_used(b);
    if (b->capacity >= huge_page) return unmap(b);
    b->~block();
    std::free(b);
  }
  static ext::block* again(ext::block* b) {
    mark_used(b);
    b->references.store(1, std::memory_order_relaxed);
    return b;
  }

  ext::block* medium(std::size_t size) {
    medium_blocks& of_size = medium_[number_of_medium(size)];
    {
      std::lock_guard lock(of_size.guard);
      if (!of_size.kept.empty()) {
        ext::block* b = of_size.kept.back();
        of_size.kept.pop_back();
        kept_medium_bytes_ -= size;
        return again(b);
      }
    }
    return small(size);
  }

  ext::block* small(std::size_t bytes) {
    std::size_t capacity = (bytes + cache_line - 1) / cache_line * cache_line;
    void* p = std::aligned_alloc(cache_line, cache_line + capacity);
    if (!p) ext::fail(errc::resource_exhausted, "cannot allocate ", bytes, " bytes");
    auto* b = new (p) ext::block;
    b->data = static_cast<char*>(p) + cache_line;
    b->capacity = capacity;
    b->home = this;
    return b;
  }

  ext::block* large(std::size_t bytes) {
    const std::size_t capacity = whole_pages(bytes);
    if (ext::block* b = recycled(capacity)) return b;
    void* p = map_within_limit(capacity);
    if (!p) {
      trim();
      p = map_within_limit(capacity);
    }
    if (!p) fail_to_allocate(bytes);
    return large_block(p, capacity);
  }
  ext::block* large_block(void* p, std::size_t capacity) {
    auto* b = new ext::block;
    b->data = p;
    b->capacity = capacity;
    b->home = this;
    return b;
  }

  /// Whether `bytes` bytes fit into the limit, and are there.
  bool has_room(std::size_t bytes) { return may_count(bytes, 0, false); }
  /// Counts `bytes` toward the limit, of which `left` must be left then. False if that cannot be.
  bool count(std::size_t bytes, std::size_t left = 0) { return may_count(bytes, left, true); }
  bool may_count(std::size_t bytes, std::size_t left, bool counts) {
    // Reading /proc/meminfo pays only where the pages cost far more.
    constexpr std::size_t large_enough = std::size_t{256} << 20;
    if (bytes >= large_enough && bytes > available_memory()) return false;
    std::lock_guard lock(guard_);
    if (bytes + left > limit_ || mapped_ > limit_ - bytes - left) return false;
    if (counts) mapped_ += bytes;
    return true;
  }
  bool try_claim(std::byte* at, std::size_t bytes, bool leaves_some) {
    if (!count(bytes, leaves_some ? limit() / 64 : 0)) return false;
    if (mprotect(at, bytes, PROT_READ | PROT_WRITE) == 0) return true;
    std::lock_guard lock(guard_);
    mapped_ -= bytes;
    return false;
  }

  void* map_within_limit(std::size_t capacity) {
    if (!count(capacity)) return nullptr;
    void* p = map(capacity, PROT_READ | PROT_WRITE, 0);
    std::lock_guard lock(guard_);
    if (p)
      mappings_.emplace(static_cast<const char*>(p), capacity);
    else
      mapped_ -= capacity;
    return p;
  }

  static void* map(std::size_t capacity, int access, int flags) {
    std::size_t reserve = capacity + huge_page;
    void* p = mmap(nullptr, reserve, access, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    auto begin = reinterpret_cast<std::uintptr_t>(p);
    auto aligned = (begin + huge_page - 1) & ~(huge_page - 1);
    if (aligned > begin) munmap(p, aligned - begin);
    auto tail = begin + reserve - (aligned + capacity);
    if (tail) munmap(reinterpret_cast<void*>(aligned + capacity), tail);
    p = reinterpret_cast<void*>(aligned);
    madvise(p, capacity, MADV_HUGEPAGE);
    return p;
  }

  void unmap(ext::block* b) noexcept {
    if (const auto f = unmapping_.load()) f({b->data, b->capacity});
    {
      std::lock_guard lock(guard_);
      mapped_ -= b->capacity;
      mappings_.erase(static_cast<const char*>(b->data));
    }
    munmap(b->data, b->capacity);
    delete b;
  }

  std::mutex guard_;
  std::vector<ext::block*> kept_;
  std::size_t kept_bytes_ = 0;
  struct medium_blocks {
    std::mutex guard;
    std::vector<ext::block*> kept;
  };
  std::array<medium_blocks, medium_sizes> medium_;  ///< by size
  std::atomic<std::size_t> kept_medium_bytes_{0};
  std::size_t mapped_ = 0;                       ///< bytes, those that are kept included
  std::map<const char*, std::size_t> mappings_;  ///< what is mapped: where, and bytes
  std::atomic<void (*)(const ext::host_mapping&) noexcept> unmapping_{nullptr};
  std::size_t limit_ = ext::physical_memory();
};

/// Memory that others have allocated.
class borrowed_memory_t final : public ext::memory {
 public:
  ext::block* allocate(std::size_t) override {
    ext::fail(errc::internal, "borrowed memory cannot be allocated");
  }
  void release(ext::block* b) noexcept override { delete b; }
};
struct kept_block : ext::block {
  std::shared_ptr<const void> owner;
};
class kept_memory_t final : public ext::memory {
 public:
  ext::block* allocate(std::size_t) override {
    ext::fail(errc::internal, "memory of an owner cannot be allocated");
  }
  void release(ext::block* b) noexcept override { delete static_cast<kept_block*>(b); }
};

ext::buffer read_only(ext::block* b, ext::memory& home, const void* data, std::size_t bytes) {
  b->data = const_cast<void*>(data);
  b->capacity = bytes;
  b->home = &home;
  b->read_only = true;
  return ext::buffer(b);
}

host_memory_t& host() {
  static auto& m = *new host_memory_t;
  return m;
}
ext::memory& borrowed() {
  static auto& m = *new borrowed_memory_t;
  return m;
}
ext::memory& kept() {
  static auto& m = *new kept_memory_t;
  return m;
}

}  // namespace

namespace ext {

std::size_t physical_memory() {
  const auto all = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return std::min(all, number_in("/sys/fs/cgroup/memory.max", all));
}

memory& host_memory() { return host(); }

}  // namespace ext

void trim_host_memory() { host().trim(); }

namespace ext {

std::size_t recycled_host_memory() { return host().kept(); }
host_mapping find_host_mapping(const void* p) { return host().find(p); }
void on_host_unmap(void (*f)(const host_mapping& m) noexcept) { host().on_unmap(f); }

}  // namespace ext

void set_host_memory_limit(std::size_t bytes) { host().set_limit(bytes); }

namespace ext {

buffer buffer::borrow(const void* data, std::size_t bytes) {
  return read_only(new block, borrowed(), data, bytes);
}
buffer buffer::kept_by(std::shared_ptr<const void> owner, const void* data, std::size_t bytes) {
  auto* b = new kept_block;
  b->owner = std::move(owner);
  return read_only(b, kept(), data, bytes);
}

growing_block::growing_block(std::size_t bytes) : capacity_(whole_pages(bytes)) {
  whole_ = host().recycled(capacity_);
  if (whole_) capacity_ = claimed_ = whole_->capacity;
  data_ = static_cast<std::byte*>(whole_ ? whole_->data : host().reserve(capacity_));
  if (!data_) host().fail_to_allocate(bytes);
}
growing_block::~growing_block() { give_back(); }

void growing_block::claim(std::size_t bytes) {
  constexpr std::size_t small = std::size_t{64} << 20;
  const std::size_t wanted = std::min(whole_pages(bytes), capacity_);
  if (wanted <= claimed_) return;
  if (!host().claim(data_ + claimed_, wanted - claimed_, wanted > small)) {
    const std::size_t all = capacity_;
    give_back();
    host().fail_to_allocate(all);
  }
  claimed_ = wanted;
}

buffer growing_block::take() {
  block* const b = whole_ ? whole_ : host().adopt(data_, capacity_);
  data_ = nullptr;
  whole_ = nullptr;
  capacity_ = claimed_ = 0;
  return buffer(b);
}

void growing_block::give_back() noexcept {
  if (whole_)
    host().release(whole_);
  else if (data_)
    host().abandon(data_, capacity_, claimed_);
  data_ = nullptr;
  whole_ = nullptr;
  capacity_ = claimed_ = 0;
}

bool buffer::is_borrowed() const { return block_ && block_->home == &borrowed(); }

}  // namespace ext

}  // namespace deft
