// SPDX-License-Identifier: Apache-2.0
// deft/transport/xml.ipp: Boost's XML archive fed by the serialize() of graph/serialize.hpp.
#pragma once
#include <boost/archive/xml_oarchive.hpp>
#include <boost/serialization/level.hpp>
#include <boost/serialization/nvp.hpp>
#include <boost/serialization/string.hpp>
#include <boost/serialization/tracking.hpp>
#include <boost/serialization/wrapper.hpp>
#include <deft/graph/serialize.hpp>
#include <deft/transport/xml.hpp>
#include <locale>
#include <sstream>
#include <type_traits>

namespace deft::detail {

/// A vector as elements called "item".
template <class T>
struct xml_list {
  std::vector<T>& values;
};

template <class T>
inline constexpr bool in_xml = false;
template <class T>
inline constexpr bool in_xml<named_value<T>> = true;
template <class T>
inline constexpr bool in_xml<xml_list<T>> = true;
template <>
inline constexpr bool in_xml<graph_def> = true;
template <>
inline constexpr bool in_xml<node_def> = true;
template <>
inline constexpr bool in_xml<edge_def> = true;
template <>
inline constexpr bool in_xml<tensor_type> = true;
template <>
inline constexpr bool in_xml<dims> = true;
template <>
inline constexpr bool in_xml<attr_value> = true;
template <>
inline constexpr bool in_xml<any_array> = true;
template <>
inline constexpr bool in_xml<program> = true;
template <>
inline constexpr bool in_xml<instruction> = true;
template <>
inline constexpr bool in_xml<source_location> = true;

template <class T>
concept shown_in_xml = in_xml<std::remove_const_t<T>>;

}  // namespace deft::detail

// Readable output: no class ids, versions or tracking.
template <class T>
requires deft::detail::shown_in_xml<T>
struct boost::serialization::implementation_level_impl<const T> {
  using tag = mpl::integral_c_tag;
  using type = mpl::int_<object_serializable>;
  static constexpr int value = object_serializable;
};
template <deft::detail::shown_in_xml T>
struct boost::serialization::tracking_level<T> {
  using tag = mpl::integral_c_tag;
  using type = mpl::int_<track_never>;
  static constexpr int value = track_never;
};
template <class T>
struct boost::serialization::is_wrapper_impl<const deft::ext::named_value<T>> : mpl::true_ {};

namespace deft {

namespace ext {

template <class T>
void serialize(boost::archive::xml_oarchive& ar, named_value<T>& v, unsigned) {
  using boost::serialization::make_nvp;
  if constexpr (std::is_same_v<T, dtype>) {
    std::string name(to_string(v.value));
    ar& make_nvp(v.name, name);
  } else if constexpr (requires(T & t) { t.emplace_back(); }) {
    detail::xml_list<typename T::value_type> list{v.value};
    ar& make_nvp(v.name, list);
  } else {
    ar& make_nvp(v.name, v.value);
  }
}

}  // namespace ext

namespace detail {
template <class T>
void serialize(boost::archive::xml_oarchive& ar, xml_list<T>& list, unsigned) {
  for (auto& v : list.values) ar& named("item", v);
}
}  // namespace detail

namespace ext {

std::string to_xml(const graph_def& g) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  {
    boost::archive::xml_oarchive ar(text);
    ar& boost::serialization::make_nvp("graph", g);
  }
  return std::move(text).str();
}

}  // namespace ext

}  // namespace deft
