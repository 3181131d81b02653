// SPDX-License-Identifier: Apache-2.0
// deft/execute/transfers.ipp: values between the parts of a step, through the step's rendezvous.
#pragma once
#include <charconv>
#include <deft/kernels/host_tables.hpp>
#include <deft/op/plan/recv.hpp>
#include <deft/op/plan/send.hpp>

namespace deft::ext {
namespace {

transfer transfer_of(const std::string& key, const std::string& peer) {
  transfer t;
  const char* end = key.data() + key.size();
  auto r = std::from_chars(key.data(), end, t.key);
  if (r.ec != std::errc() || r.ptr != end)
    fail(errc::invalid_argument, "the key \"", key, "\" is not a number");
  t.peer = intern(parse_device(peer));
  return t;
}

class send_kernel final : public value_kernel {
 public:
  explicit send_kernel(const value_request& r) : number_(r.sends.size()) {
    const auto o = decode<op::send>(r.node.attributes);
    r.sends.push_back(transfer_of(o.key, o.peer));
  }
  bool run(value_call& c) const override {
    c.step().exchange->send(number_, c.input(0));
    return true;
  }

 private:
  std::size_t number_;
};

class receive_kernel final : public value_kernel {
 public:
  explicit receive_kernel(const value_request& r) : number_(r.receives.size()) {
    const auto o = decode<op::recv>(r.node.attributes);
    r.receives.push_back(transfer_of(o.key, o.peer));
  }
  bool run(value_call& c) const override {
    any_array value;
    if (!c.step().exchange->receive(number_, value, c.make_waker())) return false;
    c.output(0, std::move(value));
    return true;
  }

 private:
  std::size_t number_;
};

template <class Kernel>
value_kernel_ptr make_transfer(const value_request& r) {
  return std::make_unique<Kernel>(r);
}

}  // namespace

kernel_table transfer_kernels() {
  static constexpr dtype_set any = all_dtypes | dtype_set{dtype::none};
  static constexpr kernel_entry table[] = {
      {op::send::name, any, nullptr, &make_transfer<send_kernel>},
      {op::recv::name, any, nullptr, &make_transfer<receive_kernel>},
  };
  return table;
}

}  // namespace deft::ext
