// SPDX-License-Identifier: Apache-2.0
// tests/data/test_csv.cpp: rows of CSV files: quotes, numbers, headers, and what is wrong with
// them.
#include <deft/data/csv.hpp>
// its own header comes first, to check that it is self-contained
#include <cmath>
#include <limits>

#include "../comma_locale.hpp"
#include "../testing.hpp"
#include "temporary_folder.hpp"

using namespace deft;
using namespace deft::ext;

namespace {

template <class... Ts>
dataset<Ts...> csv_of(const testing::temporary_folder& dir, const std::string& bytes,
                      csv_options options = {}) {
  testing::write_bytes(dir / "a.csv", bytes);
  return csv<Ts...>(dir / "a.csv", std::move(options));
}
/// Two columns of text, as "a|b" for each row.
std::vector<std::string> pairs(const dataset<std::string, std::string>& d) {
  std::vector<std::string> out;
  for (auto& [a, b] : d) out.push_back(a + "|" + b);
  return out;
}
/// An error of a pass without the folder of the file.
template <class Dataset>
std::string failure(const testing::temporary_folder& dir, const Dataset& d) {
  std::string s = testing::error_of([&] {
    for (auto& e : d) static_cast<void>(e);
  });
  const auto at = s.find(dir.path().string() + "/");
  return at == s.npos ? s : s.erase(at, dir.path().string().size() + 1);
}
using rows = std::vector<std::string>;

}  // namespace

TEST_CASE("columns have types") {
  testing::temporary_folder dir;
  auto d = csv_of<float, double, std::int32_t, std::int64_t, std::uint8_t, bool, std::string,
                  std::optional<int>>(dir,
                                      "x,d,i,l,b,t,s,o\n"
                                      "1.5, -2e3 ,+7,9000000000,255,true,a b,\n"
                                      "-inf,nan,-1,0,0,0, x ,5\n",
                                      {.header = true});
  CHECK(d.cardinality() == unknown_cardinality);
  auto i = d.begin();
  CHECK(*i == std::tuple(1.5f, -2e3, 7, std::int64_t{9'000'000'000}, std::uint8_t{255}, true,
                         std::string("a b"), std::optional<int>()));
  ++i;
  CHECK(std::get<0>(*i) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(std::get<1>(*i)));
  CHECK(std::get<5>(*i) == false);
  CHECK(std::get<6>(*i) == " x ");
  CHECK(std::get<7>(*i) == 5);
  ++i;
  CHECK(i == d.end());

  // Too small for the type, or for any: 0, with its sign.
  for (const std::string text : {"1e-60", "1e-400", "1e-5000", "0.00001e-4999", "123456e-99999",
                                 "1e-99999999999999999999", ".5e-5000"}) {
    CAPTURE(text);
    for (auto& [tiny] : csv_of<float>(dir, text + "\n")) CHECK((tiny == 0 && !std::signbit(tiny)));
    for (auto& [tiny] : csv_of<float>(dir, "-" + text)) CHECK((tiny == 0 && std::signbit(tiny)));
    if (text == "1e-60") continue;
    for (auto& [tiny] : csv_of<double>(dir, text)) CHECK((tiny == 0 && !std::signbit(tiny)));
    for (auto& [tiny] : csv_of<double>(dir, "-" + text)) CHECK((tiny == 0 && std::signbit(tiny)));
  }
  for (auto& [small] : csv_of<float>(dir, "1e-45")) CHECK(small == 1e-45f);
  for (auto& [small] : csv_of<double>(dir, "5e-324")) CHECK(small == 5e-324);
  const std::string many_zeros = "0." + std::string(5000, '0') + "1";
  for (auto& [small] : csv_of<double>(dir, many_zeros)) CHECK(small == 0);
  for (auto& [one] : csv_of<double>(dir, many_zeros + "e5001")) CHECK(one == 1);
  const std::string many_digits = "1" + std::string(5000, '0');
  for (const std::string& text : rows{"1e400", "1e5000", "-0.001e5000", "1e99999999999999999999",
                                      "12345678901e300", "0.0e1x", many_digits}) {
    CAPTURE(text);
    const std::string e = failure(dir, csv_of<double>(dir, text));
    CHECK(e.ends_with(text == "0.0e1x" ? "is not a number of type double"
                                       : "is out of range for double"));
  }

  std::string batches;
  for (auto& [x, label] : csv_of<float, std::int32_t>(dir, "1,10\n2,20\n3,30").batch(2))
    batches += str(x, label);
  CHECK(batches == "[1. 2.][10 20][3.][30]");
}

TEST_CASE("numbers are read alike in every locale") {
  const testing::comma_locale german;
  testing::temporary_folder dir;
  // The last one is read in a wider type.
  for (auto& [a, b, c] : csv_of<float, double, float>(dir, "1.5,1234.25,2.5e-46"))
    CHECK((a == 1.5f && b == 1234.25 && c == 0));
  CHECK(failure(dir, csv_of<float>(dir, "1;5", {.separator = '/'})).find("not a number") !=
        std::string::npos);
  CHECK(failure(dir, csv_of<float>(dir, "\"1,5\"")).find("not a number") != std::string::npos);
}

TEST_CASE("blanks around numbers and blank lines are ignored") {
  testing::temporary_folder dir;
  std::string seen;
  for (auto& [x, i, b] : csv_of<std::optional<float>, std::optional<int>, std::optional<bool>>(
           dir, " \n 1\t,\t,\" \"\n \t\r\n ,2 , true\n\t"))
    seen += str(x.value_or(-1), " ", i.value_or(-1), " ", b.value_or(false), "; ");
  CHECK(seen == "1 -1 false; -1 2 true; ");

  // Of text they are a part.
  rows text;
  for (auto& [s] : csv_of<std::optional<std::string>>(dir, " x\n  \n\" \"\n\"\"\n"))
    text.push_back(s.value_or("none"));
  CHECK(text == rows{" x", " ", "none"});
  CHECK(pairs(csv_of<std::string, std::string>(dir, "\t\na\t", {.separator = '\t'})) ==
        rows{"|", "a|"});
}

TEST_CASE("quotes hold separators, line ends and quotes") {
  testing::temporary_folder dir;
  auto read = [&](const std::string& bytes) {
    return pairs(csv_of<std::string, std::string>(dir, bytes));
  };
  CHECK(read("a,b") == rows{"a|b"});
  CHECK(read("a,b\nc,d\n") == rows{"a|b", "c|d"});
  CHECK(read("a,b\r\nc,\r\n") == rows{"a|b", "c|"});
  CHECK(read(",\n,") == rows{"|", "|"});
  CHECK(read("\"a,b\",\"c\nd\"\n") == rows{"a,b|c\nd"});
  CHECK(read("\"\"\"a\"\"\",\"\"\r\n\"\",\"\"\"\"\r") == rows{"\"a\"|", "|\""});
  CHECK(read("\n\r\na,b\n\n\nc,d\n\n") == rows{"a|b", "c|d"});
  CHECK(read("\xef\xbb\xbf"
             "a,b\n") == rows{"a|b"});
  CHECK(read("") == rows{});
  CHECK(pairs(csv_of<std::string, std::string>(dir, "a,b;c\n", {.separator = ';'})) ==
        rows{"a,b|c"});
  // Rows that are longer than what is read at a time, and across it.
  std::string bytes;
  rows expected;
  for (std::size_t i = 0; i < 500; ++i) {
    const std::string text(i == 3 ? 2'500'000 : i * 97 % 9000, static_cast<char>('a' + i % 26));
    bytes += "\"" + text + "\"\"\"," + text + "\n";
    expected.push_back(text + "\"|" + text);
  }
  CHECK(read(bytes) == expected);
}

TEST_CASE("columns are chosen by the names in the header") {
  testing::temporary_folder dir;
  const std::string bytes = "id,\"the age\",label\n1,2,3\n4,5,6\n";
  std::vector<int> seen;
  for (auto& [label, age] :
       csv_of<int, int>(dir, bytes, {.header = true, .columns = {"label", "the age"}}))
    seen.insert(seen.end(), {label, age});
  CHECK(seen == std::vector<int>{3, 2, 6, 5});
  // Blanks around names are ignored, as around numbers.
  seen.clear();
  for (auto& [b, c] :
       csv_of<int, int>(dir, "a, b ,\tc\n1, 2 ,3\n", {.header = true, .columns = {"b", " c"}}))
    seen.insert(seen.end(), {b, c});
  CHECK(seen == std::vector<int>{2, 3});
  CHECK(failure(dir, csv_of<int>(dir, "a,b,a\n1,2,3\n", {.header = true, .columns = {"a"}})) ==
        "invalid_argument: [csv] a.csv has two columns \"a\": read all, without .columns");
  CHECK(failure(dir, csv_of<int>(dir, bytes, {.header = true, .columns = {"name"}})) ==
        "not_found: [csv] a.csv has no column \"name\"; it has id, the age, label");
  CHECK(failure(dir, csv_of<int>(dir, bytes + "7,8\n", {.header = true, .columns = {"id"}})) ==
        "data_loss: [csv] a.csv: line 4: it has 2 fields; expected 3");
  CHECK(testing::error_of([&] { csv<int>("a", {.columns = {"id"}}); }) ==
        "invalid_argument: [csv] columns are chosen by the names in the header: set .header");
  CHECK(testing::error_of([&] {
          csv<int>("a", {.header = true, .columns = {"id", "age"}});
        }) == "invalid_argument: [csv] expects a type for each column, got 1 types and 2 columns");
  CHECK(testing::error_of([&] {
          csv<int>("a", {.separator = '"'});
        }).starts_with("invalid_argument: [csv]"));
}

TEST_CASE("what is wrong is named by file, line and column") {
  testing::temporary_folder dir;
  auto of = [&](const std::string& bytes, csv_options options = {}) {
    return failure(dir, csv_of<float, std::int32_t>(dir, bytes, options));
  };
  CHECK(of("1,2\n3,x\n") ==
        "data_loss: [csv] a.csv: line 2, column 2: \"x\" is not a number of type int32");
  CHECK(of("a,b\n1,2\n\n3,4.5\n", {.header = true}) ==
        "data_loss: [csv] a.csv: line 4, column 2 (b): \"4.5\" is not a number of type int32");
  CHECK(of(",2") == "data_loss: [csv] a.csv: line 1, column 1: \"\" is not a number of type float");
  CHECK(
      of("user,item\n1,2\n") ==
      "data_loss: [csv] a.csv: line 1, column 1: \"user\" is not a number of type float: a line of "
      "names is skipped by .header = true");
  CHECK(of("1,3000000000").ends_with("\"3000000000\" is out of range for int32"));
  CHECK(of("1e99,3").ends_with("\"1e99\" is out of range for float"));
  CHECK(of("1 2,3").ends_with("\"1 2\" is not a number of type float"));
  CHECK(of("++1,3").ends_with("\"++1\" is not a number of type float"));
  CHECK(of("1,2\n\"3\n\n\",4\n").ends_with("is not a number of type float"));
  CHECK(of("1\n") == "data_loss: [csv] a.csv: line 1: it has 1 field; expected 2");
  CHECK(of("1,2,3\n") == "data_loss: [csv] a.csv: line 1: it has 3 fields; expected 2");
  CHECK(of("a\n1,2\n", {.header = true}) ==
        "data_loss: [csv] a.csv: line 1: it has 1 field; expected 2");
  CHECK(of("\"1\n\",2\n\"3\",4x") ==
        "data_loss: [csv] a.csv: line 1, column 1: \"1\\n\" is not a number of type float");
  CHECK(of("1,2\n\"3,4\n") ==
        "data_loss: [csv] a.csv: line 2, column 1: the file ends within quotes");
  CHECK(of("1,\"2\"3\n") ==
        "data_loss: [csv] a.csv: line 1, column 2: text after the closing quote");
  CHECK(
      of("1,2\"\n") ==
      "data_loss: [csv] a.csv: line 1, column 2: a quote in a field that does not begin with one");
  // A message is one line, and UTF-8.
  CHECK(of(std::string("a\0b\rc,1\n", 9)).find("column 1: \"a\\x00b\\rc\" is not a number") !=
        std::string::npos);
  CHECK(of("1," + std::string(39, '1') + "\u00fcxx\n")
            .ends_with(std::string(39, '1') + "…\" is out of range for int32"));
  CHECK(failure(dir, csv_of<int>(dir, "a\x1b[m,b\n1,2\n", {.header = true, .columns = {"c"}})) ==
        "not_found: [csv] a.csv has no column \"c\"; it has a\\x1b[m, b");
  // Names that are read as numbers.
  CHECK(
      of("user,2\n") ==
      "data_loss: [csv] a.csv: line 1, column 1: \"user\" is not a number of type float: a line of "
      "names is skipped by .header = true");
  CHECK(of("1,2\nuser,2\n").ends_with("\"user\" is not a number of type float"));
  CHECK(of("a,b\nuser,2\n", {.header = true}).ends_with("\"user\" is not a number of type float"));
  CHECK(failure(dir, csv<int>(dir / "none")) == "not_found: [csv] there is no file none");
  CHECK(failure(dir, csv_of<bool>(dir, "yes\n")) ==
        "data_loss: [csv] a.csv: line 1, column 1: \"yes\" is not a bool");
}

TEST_CASE("lines are counted within quotes, too") {
  testing::temporary_folder dir;
  CHECK(failure(dir, csv_of<std::string, int>(dir, "\"a\nb\nc\",1\nd,e\n")) ==
        "data_loss: [csv] a.csv: line 4, column 2: \"e\" is not a number of type int32");
}
