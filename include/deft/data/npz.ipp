// SPDX-License-Identifier: Apache-2.0
// deft/data/npz.ipp: ZIP archives as .npz files need them. The format: APPNOTE.TXT of
// PKWARE, 6.3.10.
#pragma once
#include <algorithm>
#include <cstring>
#include <deft/core/file_mapping.hpp>
#include <deft/core/log.hpp>
#include <deft/data/npy.ipp>
#include <deft/data/npz.hpp>
#include <memory>

namespace deft {
namespace {

namespace zip {

constexpr std::uint32_t local_signature = 0x04034b50, member_signature = 0x02014b50,
                        end_signature = 0x06054b50, end64_signature = 0x06064b50,
                        locator_signature = 0x07064b50;
constexpr std::uint16_t stored = 0, deflated = 8, utf8_flag = 0x800, encrypted_flag = 1,
                        version_of_zip64 = 45, zip64_tag = 1;
constexpr std::uint32_t in_zip64 = ~std::uint32_t{0};  ///< a number that does not fit is there
constexpr std::size_t local_bytes = 30, member_bytes = 46, end_bytes = 22, end64_bytes = 56,
                      locator_bytes = 20;
constexpr std::string_view npy_ending = ".npy";

/// Fields of an archive that is mapped.
class reader {
 public:
  explicit reader(const std::string& path)
      : path_(path), pages_(ext::file_roots::anywhere().open_file(path), path) {}

  /// The members, by name.
  std::map<std::string, detail::file_part> members() const {
    const directory d = find_directory();
    std::map<std::string, detail::file_part> all;
    std::uint64_t at = d.begin;
    for (std::uint64_t i = 0; i < d.members; ++i) {
      need(at, member_bytes, d.end, "its list of members");
      if (number<std::uint32_t>(at) != member_signature) bad("its list of members is not sound");
      const std::uint64_t name_length = number<std::uint16_t>(at + 28),
                          extra_length = number<std::uint16_t>(at + 30),
                          whole = member_bytes + name_length + extra_length +
                                  number<std::uint16_t>(at + 32);
      need(at, whole, d.end, "its list of members");
      const std::string name(bytes().substr(at + member_bytes, name_length));
      if (!all.emplace(name, part(at, name, at + member_bytes + name_length, extra_length)).second)
        bad(ext::str("it has two members \"", ext::printable(name), "\""));
      at += whole;
    }
    if (at != d.end) bad("its list of members is not sound");
    check_apart(all, d.begin);
    return all;
  }

 private:
  struct directory {
    std::uint64_t begin = 0, end = 0, members = 0;
  };

  std::string_view bytes() const { return pages_.bytes(); }
  template <class T>
  T number(std::uint64_t at) const {
    T v{};
    std::memcpy(&v, bytes().data() + at, sizeof v);
    return v;
  }
  [[noreturn]] void bad(const std::string& what) const {
    ext::fail(errc::data_loss, "[read_npz] ", path_, ": ", what);
  }
  /// Throws unless `count` bytes from `at` are before `end`.
  void need(std::uint64_t at, std::uint64_t count, std::uint64_t end, std::string_view what) const {
    if (at > end || count > end - at) bad(ext::str(what, " goes beyond its end"));
  }

  /// The record at the end, which a comment may follow.
  std::uint64_t find_end() const {
    const std::uint64_t size = bytes().size();
    for (std::uint64_t after = end_bytes; after <= size && after <= end_bytes + 0xffff; ++after)
      if (number<std::uint32_t>(size - after) == end_signature &&
          number<std::uint16_t>(size - after + 20) == after - end_bytes)
        return size - after;
    bad("it has no record at its end, as ZIP archives do");
  }
  directory find_directory() const {
    const std::uint64_t end = find_end();
    std::uint64_t count = number<std::uint32_t>(end + 12), begin = number<std::uint32_t>(end + 16),
                  members = number<std::uint16_t>(end + 10), before = end;
    if (end >= locator_bytes && number<std::uint32_t>(end - locator_bytes) == locator_signature) {
      before = number<std::uint64_t>(end - locator_bytes + 8);
      need(before, end64_bytes, end - locator_bytes, "its record of ZIP64");
      if (number<std::uint32_t>(before) != end64_signature) bad("its record of ZIP64 is not sound");
      members = number<std::uint64_t>(before + 32);
      count = number<std::uint64_t>(before + 40);
      begin = number<std::uint64_t>(before + 48);
    }
    need(begin, count, before, "its list of members");
    return {begin, begin + count, members};
  }

  detail::file_part part(std::uint64_t at, const std::string& name, std::uint64_t extra,
                         std::uint64_t extra_length) const {
    const std::string member = ext::str("its member \"", ext::printable(name), "\"");
    const auto method = number<std::uint16_t>(at + 10);
    if (number<std::uint16_t>(at + 8) & encrypted_flag)
      ext::fail(errc::unimplemented, "[read_npz] ", path_, ": ", member, " is encrypted");
    if (method != stored && method != deflated)
      ext::fail(errc::unimplemented, "[read_npz] ", path_, ": ", member,
                " is compressed by method ", method, "; expected 0 (stored) or 8 (deflated)");
    detail::file_part p{.begin = number<std::uint32_t>(at + 42),
                        .bytes = number<std::uint32_t>(at + 20),
                        .deflated = method == deflated,
                        .size = number<std::uint32_t>(at + 24),
                        .crc = number<std::uint32_t>(at + 16)};
    take_zip64(p, extra, extra_length, member);
    if (!p.deflated && p.bytes != p.size) bad(ext::str(member, " has two sizes"));
    need(p.begin, local_bytes, bytes().size(), member);
    if (number<std::uint32_t>(p.begin) != local_signature) bad(ext::str(member, " is not there"));
    p.begin +=
        local_bytes + number<std::uint16_t>(p.begin + 26) + number<std::uint16_t>(p.begin + 28);
    need(p.begin, p.bytes, bytes().size(), member);
    return p;
  }
  /// Numbers that do not fit into 32 bits are in an extra field, in this order.
  void take_zip64(detail::file_part& p, std::uint64_t at, std::uint64_t length,
                  const std::string& member) const {
    std::uint64_t left = 0;
    for (const std::uint64_t end = at + length; at + 4 <= end;) {
      const auto tag = number<std::uint16_t>(at), count = number<std::uint16_t>(at + 2);
      at += 4;
      need(at, count, end, member);
      if (tag == zip64_tag) {
        left = count;
        break;
      }
      at += count;
    }
    for (std::uint64_t* n : {&p.size, &p.bytes, &p.begin}) {
      if (*n != in_zip64) continue;
      if (left < sizeof *n) bad(ext::str(member, " lacks a number of ZIP64"));
      *n = number<std::uint64_t>(at);
      at += sizeof *n;
      left -= sizeof *n;
    }
  }
  /// Members that overlap would be more than the file has.
  void check_apart(const std::map<std::string, detail::file_part>& all, std::uint64_t end) const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
    for (const auto& [name, p] : all) parts.emplace_back(p.begin, p.begin + p.bytes);
    std::ranges::sort(parts);
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i].second > (i + 1 < parts.size() ? parts[i + 1].first : end))
        bad("its members overlap");
  }

  std::string path_;
  ext::file_mapping pages_;
};

/// An archive that is written, whose numbers are all those of ZIP64.
class writer {
 public:
  writer(const std::string& path, bool compressed)
      : file_(ext::file_roots::anywhere(), path), method_(compressed ? deflated : stored) {}

  void add(const std::string& name, std::string_view head, std::string_view elements) {
    member m{.name = name + std::string(npy_ending), .begin = at_};
    m.size = head.size() + elements.size();
    for (const std::string_view part : {head, elements})
      m.crc = static_cast<std::uint32_t>(
          crc32_z(m.crc, reinterpret_cast<const Bytef*>(part.data()), part.size()));
    at_ += local_bytes + m.name.size() + 4 + 2 * sizeof(std::uint64_t);
    const std::uint64_t begin = at_;
    if (method_ == stored) {
      put(head);
      put(elements);
    } else {
      deflate_all(head, elements);
    }
    m.bytes = at_ - begin;
    const std::string header = local_header(m);
    file_.write(m.begin, header.data(), header.size());
    members_.push_back(std::move(m));
  }
  void commit() {
    const std::uint64_t begin = at_;
    for (const member& m : members_) put(list_entry(m));
    const std::uint64_t count = at_ - begin, end64 = at_, n = members_.size();
    std::string end;
    add_numbers(end, end64_signature, std::uint64_t{end64_bytes - 12}, version_of_zip64,
                version_of_zip64, std::uint32_t{0}, std::uint32_t{0}, n, n, count, begin);
    add_numbers(end, locator_signature, std::uint32_t{0}, end64, std::uint32_t{1});
    add_numbers(end, end_signature, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0xffff},
                std::uint16_t{0xffff}, in_zip64, in_zip64, std::uint16_t{0});
    put(end);
    file_.commit();
  }

 private:
  struct member {
    std::string name;
    std::uint64_t begin = 0, bytes = 0, size = 0;
    std::uint32_t crc = 0;
  };

  template <class... T>
  static void add_numbers(std::string& to, T... numbers) {
    (to.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  }
  /// From "version needed to extract" to the length of the name.
  void add_common(std::string& to, const member& m) const {
    constexpr std::uint16_t midnight = 0, first_of_1980 = 0x21;
    add_numbers(to, version_of_zip64, utf8_flag, method_, midnight, first_of_1980, m.crc, in_zip64,
                in_zip64, static_cast<std::uint16_t>(m.name.size()));
  }
  std::string local_header(const member& m) const {
    std::string h;
    add_numbers(h, local_signature);
    add_common(h, m);
    add_numbers(h, std::uint16_t{20});
    h += m.name;
    add_numbers(h, zip64_tag, std::uint16_t{16}, m.size, m.bytes);
    return h;
  }
  std::string list_entry(const member& m) const {
    std::string e;
    add_numbers(e, member_signature, version_of_zip64);
    add_common(e, m);
    add_numbers(e, std::uint16_t{28}, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0},
                std::uint32_t{0}, in_zip64);
    e += m.name;
    add_numbers(e, zip64_tag, std::uint16_t{24}, m.size, m.bytes, m.begin);
    return e;
  }

  void put(std::string_view bytes) {
    file_.write(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void deflate_all(std::string_view head, std::string_view elements) {
    z_stream stream{};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
    const std::unique_ptr<z_stream, int (*)(z_stream*)> ends(&stream, &deflateEnd);
    deflate_some(stream, head, false);
    deflate_some(stream, elements, true);
  }
  void deflate_some(z_stream& stream, std::string_view bytes, bool is_last) {
    std::vector<char> out(1u << 18);
    do {
      const std::string_view piece = bytes.substr(0, 1u << 30);
      bytes.remove_prefix(piece.size());
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in = static_cast<unsigned>(piece.size());
      do {
        stream.next_out = reinterpret_cast<Bytef*>(out.data());
        stream.avail_out = static_cast<unsigned>(out.size());
        deflate(&stream, is_last && bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
        put({out.data(), out.size() - stream.avail_out});
      } while (stream.avail_out == 0);
    } while (!bytes.empty());
  }

  ext::file_writer file_;
  std::uint16_t method_;
  std::uint64_t at_ = 0;
  std::vector<member> members_;
};

}  // namespace zip

}  // namespace

std::map<std::string, any_array> read_npz(const std::string& file) {
  std::map<std::string, any_array> arrays;
  std::vector<error> unsupported;
  for (const auto& [name, part] : zip::reader(file).members()) {
    if (!name.ends_with(zip::npy_ending)) {
      logging::warning("[read_npz] ", file, ": left out: \"", ext::printable(name),
                       "\" is not an .npy file");
      continue;
    }
    try {
      arrays.emplace(name.substr(0, name.size() - zip::npy_ending.size()),
                     npy_reader(file, ext::printable(name), part).array());
    } catch (const error& e) {
      if (e.code() != errc::unimplemented) throw;
      unsupported.push_back(e);
    }
  }
  if (arrays.empty() && !unsupported.empty()) throw unsupported.front();
  for (const error& e : unsupported) logging::warning("left out: ", e.message());
  return arrays;
}

void write_npz(const std::string& file, const std::map<std::string, any_array>& arrays,
               npz_options options) {
  constexpr std::size_t longest_name = 60'000;
  for (const auto& [name, a] : arrays)
    if (name.empty() || name.size() > longest_name || !ext::is_utf8(name))
      ext::fail(errc::invalid_argument, "[write_npz] ", file, ": \"", ext::printable(name),
                "\" cannot be a name: it is empty, too long, or not UTF-8");
  std::vector<std::string> heads;
  for (const auto& [name, a] : arrays) heads.push_back(npy_head("write_npz", file, a));
  zip::writer w(file, options.compressed);
  auto head = heads.begin();
  for (const auto& [name, a] : arrays)
    w.add(name, *head++, {static_cast<const char*>(a.raw()), a.bytes()});
  w.commit();
}

}  // namespace deft
