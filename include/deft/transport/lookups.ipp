// SPDX-License-Identifier: Apache-2.0
// deft/transport/lookups.ipp: threads that end when nothing is left to look up.
#pragma once
#include <deft/core/failure.hpp>
#include <deft/core/thread.hpp>
#include <deft/transport/lookups.hpp>
#include <system_error>

namespace deft::detail {

void lookups::ask(boost::asio::io_context& context, const std::string& address, callback then) {
  std::lock_guard lock(guard_);
  auto& of_address = asked_[address];
  of_address.push_back({&context, std::move(then)});
  if (of_address.size() > 1) return;
  try {
    waiting_.push_back(address);
    if (threads_ == most_at_once) return;
    start_thread([this] { run(); }).detach();
    ++threads_;
  } catch (const std::exception& e) {
    if (threads_ > 0 && !waiting_.empty() && waiting_.back() == address) return;
    asked_.erase(address);
    std::erase(waiting_, address);
    fail(errc::unavailable, "\"", address, "\" cannot be looked up: ", e.what());
  }
}

void lookups::run() {
  std::unique_lock lock(guard_);
  for (; !waiting_.empty(); lock.lock()) {
    const std::string address = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    endpoints found;
    const auto failure = failure_of([&] { found = resolve_(address); });
    lock.lock();
    const auto all = std::move(asked_.extract(address).mapped());
    lock.unlock();
    for (const auto& a : all)
      boost::asio::post(*a.context, [then = a.then, found, failure] { then(found, failure); });
  }
  --threads_;
}

}  // namespace deft::detail
