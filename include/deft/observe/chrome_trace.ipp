// SPDX-License-Identifier: Apache-2.0
// deft/observe/chrome_trace.ipp: the trace event format: complete events ("X"), and names of
// processes and threads ("M"), with times in microseconds.
#pragma once
#include <algorithm>
#include <boost/json.hpp>
#include <deft/core/file.hpp>
#include <deft/observe/chrome_trace.hpp>
#include <limits>
#include <map>
#include <tuple>

namespace deft {

namespace ext {

std::string chrome_trace(const step_trace& t) {
  namespace json = boost::json;
  json::array all;
  // Names of nodes and of files of sources may be of any bytes; JSON is UTF-8.
  std::map<std::string, int> processes;                                // by task
  std::map<std::tuple<int, std::string, std::uint32_t>, int> threads;  // by device and lane
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& e : t.events) first = std::min(first, e.begin);
  auto microseconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-3; };
  for (const auto& e : t.events) {
    const auto cut = std::min(e.device.rfind('/'), e.device.size());
    const int process =
        processes.try_emplace(e.device.substr(0, cut), static_cast<int>(processes.size()))
            .first->second;
    const int thread =
        threads
            .try_emplace({process, e.device.substr(cut), e.lane}, static_cast<int>(threads.size()))
            .first->second;
    json::object args{{"op", as_utf8(e.op)}, {"device", as_utf8(e.device)}};
    if (!e.place.empty()) args["at"] = as_utf8(e.place);
    all.push_back(json::object{{"ph", "X"},
                               {"name", as_utf8(e.node)},
                               {"cat", as_utf8(e.op)},
                               {"pid", process},
                               {"tid", thread},
                               {"ts", microseconds(e.begin - first)},
                               {"dur", microseconds(e.end - e.begin)},
                               {"args", std::move(args)}});
  }
  auto name = [&all](std::string_view what, int process, int thread, const std::string& text) {
    all.push_back(json::object{{"ph", "M"},
                               {"name", what},
                               {"pid", process},
                               {"tid", thread},
                               {"args", json::object{{"name", as_utf8(text)}}}});
  };
  for (const auto& [task, process] : processes) name("process_name", process, 0, task);
  for (const auto& [row, thread] : threads)
    name("thread_name", std::get<0>(row), thread,
         str(std::get<1>(row), " lane ", std::get<2>(row)));
  return json::serialize(json::object{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}});
}

}  // namespace ext

void write_chrome_trace(const std::string& path, const step_trace& t) {
  ext::write_file(ext::file_roots::anywhere(), path, ext::chrome_trace(t));
}

}  // namespace deft
