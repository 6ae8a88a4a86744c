// Physical memory of 16 MiB that a process exports and imports again itself, in rounds, until it is refused: `exports HOW`.
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kBytes = 16 << 20;
constexpr auto kDescriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
using Handle = CUmemGenericAllocationHandle;

CUresult create(Handle& handle) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  properties.requestedHandleTypes = kDescriptor;
  return cuMemCreate(&handle, kBytes, &properties, 0);
}

int export_of(Handle handle) {
  int descriptor = -1;
  MUST(cuMemExportToShareableHandle(&descriptor, handle, kDescriptor, 0));
  return descriptor;
}

Handle import_of(int descriptor) {
  Handle handle = 0;
  MUST(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)), kDescriptor));
  return handle;
}

// As it comes out of a socket.
int sent(int descriptor) {
  int ends[2] = {};
  socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  sendmsg(ends[0], &message, 0);
  close(descriptor);
  message.msg_controllen = sizeof control;
  recvmsg(ends[1], &message, 0);
  int received = -1;
  std::memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof received);
  close(ends[0]);
  close(ends[1]);
  return received;
}

struct Round {
  Handle handle = 0;
  int descriptor = -1;
  std::vector<Handle> imports;
  CUdeviceptr mapped = 0;
};

CUresult begin(std::string_view how, Round& round) {
  CUresult result = create(round.handle);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  int descriptor = export_of(round.handle);
  if (how == "descriptor") {  // kept, without an import
    round.descriptor = descriptor;
  } else if (how == "copy") {
    int copy = dup(descriptor);
    close(descriptor);
    round.imports.push_back(import_of(copy));
    close(copy);
  } else if (how == "socket") {
    int received = sent(descriptor);
    round.imports.push_back(import_of(received));
    close(received);
  } else if (how == "twice") {
    round.imports = {import_of(descriptor), import_of(descriptor)};
    close(descriptor);
  } else if (how == "again") {  // the import is exported, and imported
    Handle first = import_of(descriptor);
    close(descriptor);
    int second = export_of(first);
    round.imports.push_back(import_of(second));
    close(second);
    MUST(cuMemRelease(first));
  } else {
    round.imports.push_back(import_of(descriptor));
    close(descriptor);
  }
  if (how == "mapped") {
    MUST(cuMemAddressReserve(&round.mapped, kBytes, 0, 0, 0));
    MUST(cuMemMap(round.mapped, kBytes, 0, round.imports[0], 0));
    MUST(cuMemRelease(round.imports[0]));
    round.imports.clear();
  }
  if (how != "both") {
    MUST(cuMemRelease(round.handle));
    round.handle = 0;
  }
  if (how == "twice") {
    MUST(cuMemRelease(round.imports.back()));
    round.imports.pop_back();
  }
  return CUDA_SUCCESS;
}

void end(Round& round) {
  for (Handle each : round.imports) {
    MUST(cuMemRelease(each));
  }
  if (round.mapped != 0) {
    MUST(cuMemUnmap(round.mapped, kBytes));
    MUST(cuMemAddressFree(round.mapped, kBytes));
  }
  if (round.handle != 0) {
    MUST(cuMemRelease(round.handle));
  }
  if (round.descriptor != -1) {
    close(round.descriptor);
  }
}

}  // namespace

int main(int, char** arguments) {
  start();
  for (int i = 0; i < 2; ++i) {  // the second time all of it is there again
    std::vector<Round> rounds;
    CUresult result = CUDA_SUCCESS;
    while (rounds.size() < 32 && result == CUDA_SUCCESS) {
      rounds.emplace_back();
      result = begin(arguments[1], rounds.back());
    }
    std::printf("%zu rounds, then %d\n", rounds.size() - (result != CUDA_SUCCESS ? 1 : 0), result);
    for (Round& each : rounds) {
      end(each);
    }
  }
  size_t free = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  std::printf("all of it is free: %d\n", free == total);
  return 0;
}
