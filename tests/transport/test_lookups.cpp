// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <deft/transport/lookups.hpp>
#include <future>

#include "testing.hpp"

using namespace deft;
using namespace deft::ext;

TEST_CASE("an address is looked up once for all who ask meanwhile, and few at a time") {
  using detail::lookups;
  // They outlive the test, as threads of the lookups may.
  struct shared {
    boost::asio::io_context context;
    std::promise<void> gate;
    std::shared_future<void> open = gate.get_future().share();
    std::atomic<int> begun{0}, under_way{0}, most{0};
  };
  static shared& s = *new shared;
  static lookups& all = *new lookups([](const std::string& address) -> lookups::endpoints {
    ++s.begun;
    for (int now = ++s.under_way, most = s.most;
         now > most && !s.most.compare_exchange_weak(most, now);) {
    }
    s.open.wait();
    --s.under_way;
    if (address == "nowhere") fail(errc::unavailable, "cannot resolve host");
    return {{boost::asio::ip::make_address("10.0.0.1"), 7}};
  });
  boost::asio::io_context& context = s.context;
  const auto work = boost::asio::make_work_guard(context);
  constexpr int hosts = 50, asks = 100;
  int found = 0, failed = 0;
  const auto count = [&](const lookups::endpoints& e, const std::shared_ptr<const error>& why) {
    (why ? failed : found)++;
    CHECK((why ? why->code() == errc::unavailable : e.size() == 1));
  };
  for (int i = 0; i < asks; ++i) all.ask(context, "nowhere", count);
  for (int i = 0; i < hosts; ++i) all.ask(context, str("host", i), count);
  while (s.begun < lookups::most_at_once) std::this_thread::yield();
  s.gate.set_value();
  while (found + failed < hosts + asks) context.run_one();
  CHECK(found == hosts);
  CHECK(failed == asks);
  CHECK(s.begun == hosts + 1);
  CHECK(s.most == lookups::most_at_once);
  // Later it is looked up again.
  all.ask(context, "nowhere", count);
  while (failed == asks) context.run_one();
  CHECK(s.begun == hosts + 2);
}
