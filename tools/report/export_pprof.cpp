// pprof: https://github.com/google/pprof/blob/main/proto/profile.proto.
#include <map>
#include <unordered_map>

#include "tools/report/export.h"
#include "tools/report/protobuf.h"

namespace xlog::tools {

namespace {

// Numbers of fields, as profile.proto has them.
struct ProfileField {
  enum : unsigned { sample_type = 1, sample, mapping, location, function, string_table, time_nanos = 9, duration_nanos, default_type = 14 };
};
struct ValueTypeField {
  enum : unsigned { type = 1, unit };
};
struct SampleField {
  enum : unsigned { location_id = 1, value, label };
};
struct LabelField {
  enum : unsigned { key = 1, str };
};
struct MappingField {
  enum : unsigned { id = 1, filename = 5, build_id, has_functions, has_filenames, has_line_numbers };
};
struct LocationField {
  enum : unsigned { id = 1, mapping_id, address, line };
};
struct LineField {
  enum : unsigned { function_id = 1, line };
};
struct FunctionField {
  enum : unsigned { id = 1, name, system_name, filename };
};

class Profile {
 public:
  explicit Profile(const Report& report) : report_(report) { string(""); }

  std::string make() {
    constexpr const char* kTypes[][2] = {{"peak_space", "bytes"},
                                         {"inuse_objects", "count"},
                                         {"inuse_space", "bytes"},
                                         {"alloc_objects", "count"},
                                         {"alloc_space", "bytes"}};
    for (const auto& [type, unit] : kTypes) {
      ProtoMessage message;
      message.number(ValueTypeField::type, string(type));
      message.number(ValueTypeField::unit, string(unit));
      out_.text(ProfileField::sample_type, message.bytes());
    }
    for (const GpuReport& gpu : report_.gpus) {
      for (const auto& [place, group] : gpu.by(By::stack).entries()) {
        if (group.allocations + group.live + group.at_peak != 0) {
          add_sample(gpu, place, group);
        }
      }
    }
    out_.number(ProfileField::time_nanos, report_.first_time);
    out_.number(ProfileField::duration_nanos, report_.last_time - report_.first_time);
    out_.number(ProfileField::default_type, string(kTypes[0][0]));
    for (const std::string& each : strings_) {
      out_.text(ProfileField::string_table, each);
    }
    return out_.bytes();
  }

 private:
  uint64_t string(const std::string& text) {
    auto [it, is_new] = string_numbers_.try_emplace(text, strings_.size());
    if (is_new) {
      strings_.push_back(text);
    }
    return it->second;
  }

  void add_sample(const GpuReport& gpu, uint32_t place, const Group& group) {
    std::vector<uint64_t> locations;  // the innermost first, as in a stack
    const Stack* stack = report_.stack(place);
    for (const Frame* frame : stack != nullptr ? stack->frames : std::vector<const Frame*>()) {
      locations.push_back(location(*frame));
    }
    ProtoMessage label;
    label.number(LabelField::key, string("memory"));
    label.number(LabelField::str, string(gpu_name(gpu)));
    ProtoMessage sample;
    sample.packed(SampleField::location_id, locations);
    sample.packed(SampleField::value, {group.at_peak, group.live_blocks, group.live, group.allocations, group.bytes});
    sample.text(SampleField::label, label.bytes());
    out_.text(ProfileField::sample, sample.bytes());
  }

  // Numbers of mappings, locations and functions begin at 1. An address is one in the file of its mapping.
  uint64_t location(const Frame& frame) {
    auto [it, is_new] = locations_.try_emplace(&frame, locations_.size() + 1);
    if (is_new) {
      ProtoMessage line;
      line.number(LineField::function_id, function(frame));
      line.number(LineField::line, frame.line);
      ProtoMessage message;
      message.number(LocationField::id, it->second);
      message.number(LocationField::mapping_id, mapping(frame));
      message.number(LocationField::address, frame.offset);
      message.text(LocationField::line, line.bytes());
      out_.text(ProfileField::location, message.bytes());
    }
    return it->second;
  }

  uint64_t function(const Frame& frame) {
    std::string name = whole_name(frame);
    auto [it, is_new] = functions_.try_emplace({name, frame.file}, functions_.size() + 1);
    if (is_new) {
      ProtoMessage message;
      message.number(FunctionField::id, it->second);
      message.number(FunctionField::name, string(name));
      message.number(FunctionField::system_name, string(name));
      message.number(FunctionField::filename, string(frame.file));
      out_.text(ProfileField::function, message.bytes());
    }
    return it->second;
  }

  uint64_t mapping(const Frame& frame) {
    auto [it, is_new] = mappings_.try_emplace({frame.module, frame.build_id}, mappings_.size() + 1);
    if (is_new) {
      ProtoMessage message;
      message.number(MappingField::id, it->second);
      message.number(MappingField::filename, string(frame.module));
      message.number(MappingField::build_id, string(frame.build_id));
      for (unsigned each : {MappingField::has_functions, MappingField::has_filenames, MappingField::has_line_numbers}) {
        message.number(each, 1);  // nothing is left for pprof to look up
      }
      out_.text(ProfileField::mapping, message.bytes());
    }
    return it->second;
  }

  const Report& report_;
  ProtoMessage out_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, uint64_t> string_numbers_;
  std::unordered_map<const Frame*, uint64_t> locations_;
  std::map<std::pair<std::string, std::string>, uint64_t> functions_;
  std::map<std::pair<std::string, std::string>, uint64_t> mappings_;
};

}  // namespace

void export_pprof(const Report& report, std::ostream& out) { out << Profile(report).make(); }

}  // namespace xlog::tools
