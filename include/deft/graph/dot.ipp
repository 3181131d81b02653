// SPDX-License-Identifier: Apache-2.0
// deft/graph/dot.ipp: boxes, clusters and edges.
#pragma once
#include <array>
#include <deft/graph/dot.hpp>
#include <deft/graph/node_text.hpp>
#include <map>

namespace deft {
namespace {

std::string dot_quoted(std::string_view text) {
  std::string s = "\"";
  for (char c : ext::as_utf8(text)) {
    if (c == '"' || c == '\\') s += '\\';
    if (c == '\n')
      s += "\\n";
    else
      s += c;
  }
  return s + '"';
}

/// Broken after blanks into lines of about `width` letters.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string s;
  std::size_t line = 0;
  for (char c : text) {
    s += c;
    ++line;
    if (c == ' ' && line >= width) {
      s.back() = '\n';
      line = 0;
    }
  }
  return s;
}

/// Pale fills, dark enough apart for colour-blind readers; then they repeat.
constexpr std::array device_colours = {"#d6e6f5", "#fde3c4", "#d9efd3", "#eadcf2",
                                       "#fbd5d5", "#fff3b8", "#d5eeee", "#e3e0d8"};

std::string node_line(const graph_def& g, const ext::node_def& n, const char* colour) {
  const std::string& name = n.name;
  std::string label = name;
  const std::string what = ext::expression_text(g, n);
  if (what != name) label += "\n" + wrapped(what, 24);
  if (!n.outputs.empty()) label += "\n" + to_string(n.outputs[0]);
  if (n.outputs.size() > 1) label += ext::str(" and ", n.outputs.size() - 1, " more");
  const bool state = n.op->resources && n.op->role == op_role::variable;
  return ext::str("[label=", dot_quoted(label), ", fillcolor=\"", colour, "\"",
                  state ? ", shape=cylinder" : "", "];\n");
}

}  // namespace

std::string to_dot(const graph_def& g) {
  auto device_of = [&](std::size_t i) {
    const ext::placement d = g.nodes[i].device ? g.nodes[i].device : g.nodes[i].requested;
    return d ? *d : device_name();
  };
  std::map<device_name, std::map<device_name, std::vector<std::size_t>>> tasks;
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    tasks[device_of(i).task_name()][device_of(i)].push_back(i);
  std::string s =
      "digraph deft {\n"
      "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=11];\n"
      "  edge [fontname=\"Helvetica\", fontsize=10];\n";
  std::size_t cluster = 0, colour = 0;
  for (const auto& [task, devices] : tasks) {
    if (!task.empty())
      s += ext::str("  subgraph cluster_", cluster++, " {\n    label=", dot_quoted(to_string(task)),
                    ";\n    fontname=\"Helvetica\";\n    color=\"#888888\";\n");
    for (const auto& [device, nodes] : devices) {
      const char* fill =
          device.empty() ? "#ffffff" : device_colours[colour++ % device_colours.size()];
      for (auto i : nodes) s += ext::str("    n", i, " ", node_line(g, g.nodes[i], fill));
    }
    if (!task.empty()) s += "  }\n";
  }
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    for (auto e : g.nodes[i].inputs) {
      s += ext::str("  n", e.node, " -> n", i);
      if (device_of(e.node) != device_of(i)) {
        const std::int64_t bytes = ext::bytes_of_value(g.nodes[e.node].outputs[e.port]);
        s += ext::str(" [penwidth=2, label=\"", bytes == dyn ? "?" : ext::str(bytes), " bytes\"]");
      }
      s += ";\n";
    }
    for (auto c : g.nodes[i].controls)
      s += ext::str("  n", c, " -> n", i, " [style=dashed, color=\"#aaaaaa\"];\n");
  }
  return s + "}\n";
}

}  // namespace deft
