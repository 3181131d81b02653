// SPDX-License-Identifier: Apache-2.0
// deft/session/server/server_table.ipp: the servers of this process, by address.
#pragma once
#include <deft/session/server/server_impl.hpp>
#include <deft/session/server/server_table.hpp>
#include <map>
#include <mutex>

namespace deft::ext {
namespace {

struct server_table {
  std::mutex guard;
  std::map<std::string, server_impl*> by_address;
};
server_table& servers_here() {
  static auto& t = *new server_table;
  return t;
}

}  // namespace

void add_server(const std::string& address, server_impl& s) {
  auto& t = servers_here();
  std::lock_guard lock(t.guard);
  t.by_address[address] = &s;
}

void remove_server(const server_impl& s) {
  auto& t = servers_here();
  std::lock_guard lock(t.guard);
  std::erase_if(t.by_address, [&](const auto& e) { return e.second == &s; });
}

std::shared_ptr<engine> engine_of_server(const std::string& address, const std::string& task,
                                         const session_options& options) {
  auto& t = servers_here();
  std::lock_guard lock(t.guard);  // a server is removed before it is destroyed
  auto at = t.by_address.find(address);
  if (at == t.by_address.end()) return nullptr;
  if (const std::string name = to_string(at->second->name()); !task.empty() && name != task)
    fail(errc::failed_precondition, address, " is ", name, ", not ", task);
  return at->second->make_engine(options);
}

}  // namespace deft::ext
