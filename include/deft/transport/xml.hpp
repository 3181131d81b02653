// SPDX-License-Identifier: Apache-2.0
// deft/transport/xml.hpp: a graph as XML, for people to read.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <string>

namespace deft::ext {

/// The graph as XML: the fields of the wire format, by name; long arrays are shortened.
std::string to_xml(const graph_def& g);

}  // namespace deft::ext
