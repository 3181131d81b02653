// SPDX-License-Identifier: Apache-2.0
// deft/transport/read_buffer.ipp: the memory that a thread keeps for the buffers that it fills.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/transport/read_buffer.hpp>
#include <new>
#include <utility>

namespace deft::detail {

namespace {
/// Two: a stream within a machine has a buffer too, which is filled while the reader's is.
/// Without a destructor, as a thread's last connections may be closed after its other variables
/// have been destroyed.
constinit thread_local std::byte* kept_memory[2] = {};
constinit thread_local bool thread_ends = false;

struct at_end_of_thread {
  ~at_end_of_thread() {
    thread_ends = true;
    for (auto& m : kept_memory) delete[] std::exchange(m, nullptr);
  }
};

std::byte* new_memory() {
  for (auto& m : kept_memory)
    if (m) return std::exchange(m, nullptr);
  return new (std::nothrow) std::byte[read_buffer::capacity];
}
void keep_or_delete(std::byte* memory) {
  if (!thread_ends) {
    static thread_local at_end_of_thread deletes_it;
    static_cast<void>(deletes_it);
    for (auto& m : kept_memory)
      if (!m) return static_cast<void>(m = memory);
  }
  delete[] memory;
}
}  // namespace

std::size_t read_buffer::take(void* to, std::size_t most) noexcept {
  const std::size_t n = std::min(size(), most);
  if (n > 0) std::memcpy(to, memory_.get() + begin_, n);
  begin_ += n;
  return n;
}

std::span<std::byte> read_buffer::space() noexcept {
  if (!memory_) {
    memory_.reset(new_memory());
    if (!memory_) return {};
  }
  if (begin_ > 0) {
    std::memmove(memory_.get(), memory_.get() + begin_, size());
    end_ = size();
    begin_ = 0;
  }
  return {memory_.get() + end_, capacity - end_};
}

void read_buffer::give_back() noexcept {
  begin_ = end_ = 0;
  if (memory_) keep_or_delete(memory_.release());
}

}  // namespace deft::detail
