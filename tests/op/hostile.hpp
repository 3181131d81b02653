// SPDX-License-Identifier: Apache-2.0
// tests/op/hostile.hpp: shape rules on attributes and inputs that no builder makes.
#pragma once
#include <array>
#include <deft/core/hash.hpp>
#include <deft/core/philox.hpp>
#include <deft/op/catalog.hpp>

#include "testing.hpp"

namespace testing {

/// Attributes and inputs that no builder makes.
class hostile {
 public:
  explicit hostile(std::uint32_t seed) : key_{seed, 1} {}

  std::uint32_t below(std::uint32_t n) { return next() % n; }
  std::int64_t number() {
    static constexpr std::int64_t odd[] = {0,
                                           1,
                                           2,
                                           3,
                                           -1,
                                           -2,
                                           -3,
                                           -9,
                                           7,
                                           8,
                                           INT64_MIN,
                                           INT64_MAX,
                                           INT64_MIN + 1,
                                           std::int64_t{1} << 32,
                                           std::int64_t{1} << 62,
                                           1000000007};
    return below(4) ? odd[below(4)] : odd[below(std::size(odd))];
  }
  deft::dims shape() {
    deft::dims d;
    for (auto n = below(deft::max_rank + 1); n > 0; --n)
      d.push_back(below(8) ? below(4) : number());
    return d;
  }
  /// A valid type, as the result of another node.
  deft::dims sound_shape() {
    for (;;)
      if (deft::dims d = shape(); deft::ext::is_sound(d)) return d;
  }
  deft::ext::tensor_type type() {
    return {sound_shape(), deft::ext::every_dtype[below(deft::ext::every_dtype.size())]};
  }
  deft::ext::attr_value attribute(const deft::ext::attr_value* proper) {
    if (proper && below(3)) {
      if (std::holds_alternative<std::int64_t>(*proper)) return number();
      if (std::holds_alternative<deft::ext::integers>(*proper)) return list();
      return *proper;
    }
    switch (below(6)) {
      case 0:
        return number();
      case 1:
        return below(2) ? 0.5 : -1e308 * 10;
      case 2:
        return std::string(below(3), 'x');
      case 3:
        return list();
      case 4:
        return below(2)
                   ? deft::any_array()
                   : deft::any_array(deft::dtype::float32, shape(), deft::ext::buffer::host(8));
      default:
        return deft::ext::program_ref(below(2) ? std::make_shared<deft::ext::program>() : nullptr);
    }
  }

 private:
  std::uint32_t next() { return deft::ext::philox({count_++, 0, 0, 0}, key_)[0]; }
  deft::ext::integers list() {
    deft::ext::integers v;
    for (auto n = below(10); n > 0; --n) v.push_back(number());
    return v;
  }
  std::array<std::uint32_t, 2> key_;
  std::uint32_t count_ = 0;
};

/// How many of those an operation's rule took.
struct hostile_counts {
  std::size_t passed = 0, refused = 0;
};

/// Each of an op_list's rules refuses them by invalid_argument, or yields valid types.
template <class... Op>
hostile_counts check_hostile(deft::op::op_list<Op...> all) {
  using namespace deft;
  using namespace deft::ext;
  hostile_counts counts;
  all.each([&]<class Each>() {
    CAPTURE(Each::name);
    hostile h(static_cast<std::uint32_t>(hash_text(Each::name)));
    const attr_list proper = encode(Each{});
    std::vector<tensor_type> in, out;
    for (int i = 0; i < 3000; ++i) {
      const op_def& def = record_of<Each>;
      int inputs = def.max_inputs < 0
                       ? static_cast<int>(h.below(5))
                       : def.min_inputs + static_cast<int>(h.below(static_cast<std::uint32_t>(
                                              def.max_inputs - def.min_inputs + 1)));
      in.clear();
      tensor_type one = h.type();
      for (int k = 0; k < inputs; ++k) in.push_back(h.below(2) ? one : h.type());
      std::vector<attr_value> attributes;
      for (const auto& a : proper) attributes.push_back(h.attribute(h.below(8) ? &a : nullptr));
      try {
        infer_types(def, {in, attributes}, out);
        ++counts.passed;
        for (const auto& t : out) {
          CHECK(is_sound(t.shape));
          CHECK(is_valid(t.type));
        }
      } catch (const error& e) {
        ++counts.refused;
        if (e.code() != errc::invalid_argument || e.message().empty()) FAIL(e.what());
      }
    }
  });
  return counts;
}

}  // namespace testing
