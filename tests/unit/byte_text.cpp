// Paths and names of any bytes, written and read back.
#include <boost/test/unit_test.hpp>
#include <random>

#include "runtime/record/event.h"
#include "runtime/record/row_writer.h"
#include "runtime/refusal/stack_labels.h"
#include "support/process.h"
#include "tools/log/byte_text.h"
#include "tools/log/csv_line.h"
#include "tools/log/stacks.h"

using namespace xlog;
using namespace xlog::tools;
using test::TempFolder;

namespace {

const std::string kWeird =
    std::string("/a,b/\"q\"\",/new\nline/\x1b[31m/\xff\xfe/\xc3\xa4/%p %%/back\\slash\\x41/ sp ace/") + '\x7f' + "/\r\t/app";

std::string random_bytes(std::mt19937& random) {
  std::string out(random() % 40, '\0');
  for (char& c : out) {
    constexpr std::string_view kSpecial = ",\"\\x\n\r4 \xc3\xa4\xe2\x80";
    c = random() % 2 == 0 ? kSpecial[random() % kSpecial.size()] : static_cast<char>(random());
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_field_has_the_same_bytes_when_it_is_read_back) {
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i == 0 ? kWeird : random_bytes(random);
    std::string line = "7," + whole_field(text) + ",9";
    CsvLine fields;
    BOOST_REQUIRE(fields.split(line));
    BOOST_REQUIRE(fields.size() == 3);
    BOOST_REQUIRE(from_field(fields[1]) == text);
    BOOST_REQUIRE(line.find_first_of("\n\r\0", 0, 3) == line.npos);
  }
}

BOOST_AUTO_TEST_CASE(what_is_shown_can_do_nothing_to_a_terminal) {
  BOOST_TEST(printable("a\nb\x1b[31m\x7f\xff\xc2\x9b\xc3\xa4") == "a\\x0ab\\x1b[31m\\x7f\\xff\\xc2\\x9b\xc3\xa4");
  BOOST_TEST(printable(std::string(100, 'a'), 100) == std::string(100, 'a'));
  BOOST_TEST(printable(std::string(101, 'a'), 100) == std::string(97, 'a') + "...");
  BOOST_TEST(printable(std::string(96, 'a') + "\xc3\xa4\xc3\xa4\xc3\xa4", 100) == std::string(96, 'a') + "...");
}

BOOST_AUTO_TEST_CASE(stacks_are_the_same_when_they_are_written_and_read_back) {
  TempFolder folder;
  std::string path = folder / "x.stacks.csv";
  std::string text = std::string(kStackColumns) + '\n';
  text += "1,0," + whole_field(kWeird) + ",ab,0x10," + whole_field("inner, \"f\"\n\\x41") + ',' + whole_field(kWeird + ".h") + ",4\n";
  text += "1,0," + whole_field(kWeird) + ",ab,0x10,middle,m.h,5\n1,0," + whole_field(kWeird) + ",ab,0x10,main,m.cpp,6\n";
  text += "1,1,[python],,0x2,train," + whole_field(kWeird + ".py") + ",7\n1,2,[python],,0x2,train," + whole_field(kWeird + ".py") + ",7\n";
  text += "2,0," + whole_field(kWeird) + ",ab,0x10,inner,,\n2,1,/other,ab,0x10,start,,\n";
  test::spit(path, text);
  for (int round = 0; round < 2; ++round) {
    StackFile stacks;
    stacks.read(path);
    const Stack* one = stacks.find(1);
    BOOST_REQUIRE(one != nullptr);
    BOOST_REQUIRE(one->frames.size() == 5);
    BOOST_TEST((one->frames[0]->module == kWeird));
    BOOST_TEST((one->frames[0]->function == "inner, \"f\"\n\\x41"));
    BOOST_TEST((one->frames[0]->file == kWeird + ".h"));
    BOOST_TEST(one->frames[0]->inlined);
    BOOST_TEST(one->frames[1]->inlined);
    BOOST_TEST(one->frames[2]->function == "main");
    BOOST_TEST(!one->frames[2]->inlined);
    BOOST_TEST((one->frames[4]->file == kWeird + ".py"));
    // The same address in another stack has the same functions.
    BOOST_TEST(stacks.find(2)->frames.size() == 4);
    BOOST_TEST(stacks.write(path));
  }
}

// As a refusal's report reads the file, inside the program.
BOOST_AUTO_TEST_CASE(the_label_of_a_stack_in_a_strange_folder) {
  TempFolder folder;
  std::string path = folder / "x.stacks.csv";
  test::spit(path, std::string(kStackColumns) + "\n3,0," + whole_field("/a\",b/\"\"/li\"b,.so") + ",ab,0x10,,,\n");
  StackLabel label[1];
  label[0].stack_id = 3;
  read_labels(path.c_str(), label);
  BOOST_TEST(label[0].text.view() == "li\"\"b,.so+0x10");
}
