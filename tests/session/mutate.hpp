// SPDX-License-Identifier: Apache-2.0
// tests/session/mutate.hpp: makes seeded changes to bytes, graphs and messages, as an attacker
// would.
#pragma once
#include <cmath>
#include <deft/graph/graph_def.hpp>
#include <deft/train/replicas/operations.hpp>
#include <span>
#include <string>
#include <vector>

#include "graph/edit.hpp"

namespace testing {

/// The library's operations.
inline const std::vector<const deft::ext::op_def*>& all_operations() {
  static const auto& all = *new auto([] {
    const auto catalog = deft::ext::catalog_ops();
    std::vector<const deft::ext::op_def*> made(catalog.begin(), catalog.end());
    deft::op::replica_operations::each(
        [&]<class Op>() { made.push_back(&deft::ext::record_of<Op>); });
    return made;
  }());
  return all;
}

/// Random numbers that depend only on a seed.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1; n is not 0.
  std::size_t below(std::size_t n) { return next() % n; }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }
  template <class Range>
  auto& pick(Range& r) {
    return r[below(std::size(r))];
  }
  /// An integer that is likely to break things.
  std::int64_t odd_number() {
    static constexpr std::int64_t odd[] = {
        0,  1,       -1,        2,         3,         7,         8,          9,         63,
        64, 65,      127,       128,       255,       256,       4096,       1 << 16,   1 << 20,
        -2, 1 << 30, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, UINT32_MAX, 1ll << 40, 1ll << 62};
    return chance(4) ? static_cast<std::int64_t>(next() >> below(64)) : pick(odd);
  }

 private:
  std::uint64_t state_;
};

/// Flips, overwrites, truncates, inserts or repeats some bytes.
inline void mutate(std::vector<std::byte>& bytes, dice& d) {
  for (std::size_t n = 1 + d.below(4); n > 0; --n) {
    if (bytes.empty()) bytes.resize(1 + d.below(16));
    std::size_t at = d.below(bytes.size());
    switch (d.below(7)) {
      case 0:
        bytes[at] ^= std::byte(1u << d.below(8));
        break;
      case 1:
        bytes[at] = std::byte(d.next());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), 1 + d.below(9),
                     std::byte(d.next()));
        break;
      case 4:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() +
                        static_cast<std::ptrdiff_t>(std::min(bytes.size(), at + 1 + d.below(9))));
        break;
      case 5: {
        auto number = static_cast<std::uint64_t>(d.odd_number());
        for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
          bytes[at + i] = std::byte(number >> (8 * i));
        break;
      }
      default: {
        std::size_t from = d.below(bytes.size()), length = 1 + d.below(40);
        for (std::size_t i = 0; i < length && at + i < bytes.size(); ++i)
          bytes[at + i] = bytes[(from + i) % bytes.size()];
      }
    }
  }
}

inline deft::dims odd_shape(dice& d) {
  deft::dims s;
  for (std::size_t n = d.below(5); n > 0; --n)
    s.push_back(d.chance(2) ? static_cast<std::int64_t>(d.below(5)) : d.odd_number());
  return s;
}

inline std::string odd_text(dice& d) {
  static const std::string odd[] = {"",
                                    "v",
                                    "1",
                                    "-1",
                                    "18446744073709551615",
                                    "/job:worker/replica:0/task:0",
                                    "/job:worker/replica:0/task:0/cpu:0",
                                    "/job:worker/replica:0/task:99/cpu:0",
                                    "/job:ps/task:0",
                                    "/cpu:1",
                                    "/job:*",
                                    std::string(300, 'x'),
                                    std::string("\0a", 2)};
  return d.pick(odd);
}

inline deft::ext::attr_value odd_attribute(dice& d) {
  switch (d.below(5)) {
    case 0:
      return d.odd_number();
    case 1: {
      static const double odd[] = {0, -0.0, 1e300, -1e-300, HUGE_VAL, NAN, 1.5};
      return d.pick(odd);
    }
    case 2:
      return odd_text(d);
    case 3: {
      deft::ext::integers list;
      for (std::size_t n = d.below(10); n > 0; --n) list.push_back(d.odd_number());
      return list;
    }
    default: {
      auto type = deft::ext::every_dtype[d.below(deft::ext::every_dtype.size())];
      deft::any_array a(type, deft::dims{static_cast<std::int64_t>(d.below(6))});
      if (type == deft::dtype::string) return deft::any_array::scalar(odd_text(d));
      auto* bytes = static_cast<unsigned char*>(a.mutable_raw());
      for (std::size_t i = 0; i < a.bytes(); ++i)
        bytes[i] = static_cast<unsigned char>(type == deft::dtype::boolean ? d.below(2) : d.next());
      return a;
    }
  }
}

inline void mutate(deft::ext::program& p, dice& d) {
  auto& i = d.pick(p.code);
  switch (d.below(7)) {
    case 0:
      d.pick(i.args) = static_cast<std::uint16_t>(d.odd_number());
      break;
    case 1:
      i.count = static_cast<std::uint8_t>(d.below(4));
      break;
    case 2:
      i.type =
          deft::ext::dtype_of_number(static_cast<std::int64_t>(d.below(deft::ext::dtype_count)));
      break;
    case 3: {
      const auto& all = all_operations();
      i.op = all[d.below(all.size())];
      break;
    }
    case 4:
      p.immediates.push_back(
          deft::ext::dtype_of_number(static_cast<std::int64_t>(d.below(deft::ext::dtype_count))));
      break;
    case 5:
      if (!p.inputs.empty())
        d.pick(p.inputs) =
            deft::ext::dtype_of_number(static_cast<std::int64_t>(d.below(deft::ext::dtype_count)));
      break;
    default:
      p.code.push_back(i);
  }
}

inline void mutate(deft::ext::attr_value& a, dice& d) {
  if (auto* list = std::get_if<deft::ext::integers>(&a); list && !list->empty() && d.chance(2)) {
    d.pick(*list) = d.odd_number();
  } else if (auto* number = std::get_if<std::int64_t>(&a); number && d.chance(2)) {
    const std::uint64_t near = static_cast<std::uint64_t>(*number) + d.below(5) - 2;  // may wrap
    *number = d.chance(2) ? d.odd_number() : static_cast<std::int64_t>(near);
  } else if (auto* p = std::get_if<deft::ext::program_ref>(&a); p && *p && !d.chance(8)) {
    auto changed = std::make_shared<deft::ext::program>(**p);
    mutate(*changed, d);
    *p = changed;
  } else {
    a = odd_attribute(d);
  }
}

/// Changes a node of `g`, its source location, or an edge.
inline void mutate(deft::graph_def& g, std::vector<deft::ext::edge_def>& fetches, dice& d) {
  if (g.nodes.empty()) return;
  auto number = [&] {
    return static_cast<std::uint32_t>(d.chance(8) ? static_cast<std::size_t>(d.odd_number())
                                                  : d.below(g.nodes.size()));
  };
  auto port = [&] { return static_cast<std::uint32_t>(d.chance(4) ? d.odd_number() : d.below(2)); };
  auto& n = d.pick(g.nodes);
  auto& other = d.pick(g.nodes);
  switch (d.below(18)) {
    case 0:
    case 1:
    case 2:
      if (!n.attributes.empty()) edit(n.attributes, [&](auto& a) { mutate(d.pick(a), d); });
      break;
    case 3:
      std::swap(n.attributes, other.attributes);
      break;
    case 4:
      if (!n.attributes.empty() && !other.attributes.empty())
        edit(n.attributes, [&](auto& a) { d.pick(a) = d.pick(other.attributes); });
      break;
    case 5:
      if (!n.inputs.empty()) d.pick(n.inputs) = {number(), port()};
      break;
    case 6:
      n.inputs.push_back({number(), port()});
      break;
    case 7:
      if (!n.inputs.empty()) n.inputs.pop_back();
      break;
    case 8:
      n.controls.push_back(number());
      break;
    case 9:
      if (!n.outputs.empty()) edit(n.outputs, [&](auto& o) { d.pick(o).shape = odd_shape(d); });
      break;
    case 10:
      if (!n.outputs.empty())
        edit(n.outputs, [&](auto& o) {
          d.pick(o).type = deft::ext::dtype_of_number(
              static_cast<std::int64_t>(d.below(deft::ext::dtype_count)));
        });
      break;
    case 11: {
      const auto& all = all_operations();
      n.op = all[d.below(all.size())];
      break;
    }
    case 12:
      // Consistent with its output type, so that it passes more checks.
      if (!n.attributes.empty()) {
        edit(n.attributes, [&](auto& a) { mutate(d.pick(a), d); });
        std::vector<deft::ext::tensor_type> in, out;
        try {
          for (auto e : n.inputs) in.push_back(g.nodes.at(e.node).outputs.at(e.port));
          deft::ext::infer_types(*n.op, {in, n.attributes}, out);
          n.outputs = std::move(out);
        } catch (const std::exception&) {
          break;
        }
      }
      break;
    case 13:
      std::swap(n, other);
      break;
    case 14:
      n.name = odd_text(d);
      edit(n.outputs, [&](auto& o) { o.resize(d.below(3)); });
      break;
    case 15:
      if (n.device && other.device) std::swap(n.device, other.device);
      n.requested = other.device;
      break;
    case 16:
      g.nodes.resize(d.below(g.nodes.size() + 1));
      break;
    default:
      if (fetches.empty() || d.chance(2))
        fetches.push_back({number(), port()});
      else
        d.pick(fetches) = {number(), port()};
  }
}

}  // namespace testing
