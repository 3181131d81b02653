// SPDX-License-Identifier: Apache-2.0
// deft/transport/xml.hpp: a graph as XML, for reading by eye.
#pragma once
#include <deft/graph/graph_def.hpp>
#include <string>

namespace deft {

/// The same fields as travel over the wire, by name; long arrays are shortened.
std::string to_xml(const graph_def& g);

}  // namespace deft
