// Names that are kept from one report to the next, and what must not be believed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "support/process.h"
#include "tools/log/cache_folder.h"
#include "tools/log/name_cache.h"

using namespace xlog::tools;
using xlog::test::slurp;
using xlog::test::spit;
using xlog::test::TempFolder;

namespace {

constexpr const char* kId = "0123456789abcdef";

// A cache of its own, and a module to have names of.
class Place {
 public:
  Place() {
    setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    spit(module(), "code");
  }
  ~Place() { unsetenv("XDG_CACHE_HOME"); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] std::string module() const { return folder_ / "app"; }
  [[nodiscard]] std::string cache() const { return folder_ / "cache/xlog"; }
  [[nodiscard]] std::string file() const {
    std::string name = xlog::test::run({"ls", cache()}).out;
    return cache() + '/' + name.substr(0, name.find('\n'));
  }
  void fill() const {
    NameCache cache(module(), kId);
    cache.add(16, {{"inner(int)", "/a,b/\n\xff.h", 4}, {"main", "m.cpp", 5}});
    cache.add(32, {});
    cache.write();
  }
  [[nodiscard]] bool known() const {
    NameCache cache(module(), kId);
    return cache.find(16) != nullptr;
  }

 private:
  TempFolder folder_;
};

mode_t mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(names_are_kept) {
  Place place;
  BOOST_TEST(!place.known());
  place.fill();
  NameCache cache(place.module(), kId);
  BOOST_REQUIRE(cache.find(16) != nullptr);
  BOOST_REQUIRE(cache.find(16)->size() == 2);
  BOOST_TEST((*cache.find(16))[0].function == "inner(int)");
  BOOST_TEST(((*cache.find(16))[0].file == "/a,b/\n\xff.h"));
  BOOST_TEST((*cache.find(16))[1].line == 5);
  BOOST_REQUIRE(cache.find(32) != nullptr);  // known to have none
  BOOST_TEST(cache.find(32)->empty());
  BOOST_TEST(cache.find(48) == nullptr);
  BOOST_TEST(mode_of(place.cache()) == 0700);
  BOOST_TEST(mode_of(place.file()) == 0600);
}

BOOST_AUTO_TEST_CASE(names_of_a_file_that_has_changed_or_has_no_build_id_are_not_kept) {
  Place place;
  place.fill();
  BOOST_TEST(place.known());
  NameCache other(place.module(), "fedcba9876543210");
  BOOST_TEST(other.find(16) == nullptr);
  NameCache strange(place.module(), "../../0123456789");
  strange.add(16, {});
  strange.write();
  BOOST_TEST(strange.find(16) != nullptr);  // in this report
  spit(place.module(), "other code");
  BOOST_TEST(!place.known());
}

BOOST_AUTO_TEST_CASE(a_damaged_cache_is_none) {
  Place place;
  place.fill();
  std::string whole = slurp(place.file());
  for (size_t i = 0; i < whole.size(); ++i) {
    spit(place.file(), whole.substr(0, i));
    BOOST_TEST(!place.known(), "cut at " << i);
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    spit(place.file(), changed);
    BOOST_TEST(!place.known(), "changed at " << i);
  }
  spit(place.file(), whole);
  BOOST_TEST(place.known());
}

BOOST_AUTO_TEST_CASE(a_cache_that_others_may_write_to_is_none) {
  Place place;
  place.fill();
  chmod(place.file().c_str(), 0620);
  BOOST_TEST(!place.known());
  chmod(place.file().c_str(), 0600);
  BOOST_TEST(place.known());
  chmod(place.cache().c_str(), 0770);
  BOOST_TEST(!place.known());
  chmod(place.cache().c_str(), 0700);
  BOOST_TEST(place.known());
}

BOOST_AUTO_TEST_CASE(no_link_is_followed_and_no_pipe_is_waited_for) {
  Place place;
  place.fill();
  std::string file = place.file();
  std::string elsewhere = place.module() + ".names";
  BOOST_REQUIRE(rename(file.c_str(), elsewhere.c_str()) == 0);
  BOOST_REQUIRE(symlink(elsewhere.c_str(), file.c_str()) == 0);
  BOOST_TEST(!place.known());
  std::string before = slurp(elsewhere);
  place.fill();  // a file takes the link's place
  BOOST_TEST(slurp(elsewhere) == before);
  BOOST_TEST(place.known());
  unlink(file.c_str());
  BOOST_REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  BOOST_TEST(!place.known());
  // Nor is a folder that is a link.
  std::string folder = place.cache();
  BOOST_REQUIRE(rename(folder.c_str(), (folder + ".else").c_str()) == 0);
  BOOST_REQUIRE(symlink((folder + ".else").c_str(), folder.c_str()) == 0);
  place.fill();
  BOOST_TEST(!place.known());
}

BOOST_AUTO_TEST_CASE(the_oldest_names_go_when_there_are_too_many) {
  Place place;
  place.fill();
  int folder = open_cache_folder();
  BOOST_REQUIRE(folder >= 0);
  for (int i = 0; i < 4; ++i) {
    std::string name = "old" + std::to_string(i);
    write_cache_file(folder, name, std::string(1000, 'x'));
    const timespec times[2] = {{1000 + i, 0}, {1000 + i, 0}};
    utimensat(folder, name.c_str(), times, 0);
  }
  trim_cache(folder, 2500);
  BOOST_TEST(!read_cache_file(folder, "old0", 4000));
  BOOST_TEST(!read_cache_file(folder, "old1", 4000));
  BOOST_TEST(read_cache_file(folder, "old3", 4000).has_value());
  BOOST_TEST(!read_cache_file(folder, "old3", 999));
  BOOST_TEST(place.known());
  close(folder);
}
