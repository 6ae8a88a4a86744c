#!/bin/bash
# lint-streams.sh: which files may pass a stream to the driver. A stream of the program may be passed only inside the call
# in which the program passed it, and in that thread: the driver dies when a stream is asked about while another thread
# begins a capture on it. Whoever needs to know later records an event of ours in that call, and asks the event.
set -u
bad=0
complain() { echo "lint: $*" >&2; bad=1; }

# Inside the call: the program's StreamArg came with it.
within_the_call=' runtime/runtime.cpp runtime/sharing.cpp runtime/devices.cpp runtime/resource/pending_frees.cpp runtime/guard/launch_checks.cpp '
# On streams that the library made, or for the guard's checks inside the call.
own_streams=' runtime/resource/pool_source.cpp runtime/resource/peer_grant.cpp runtime/resource/stream_pool.cpp runtime/guard/guard_memory.cpp '

calls='cuStreamQuery|cuStreamSynchronize|cuStreamIsCapturing|cuStreamGetCaptureInfo|cuStreamWaitEvent|cuStreamGetCtx|cuStreamGetId|cuStreamGetDevice|cuStreamGetFlags|cuStreamGetPriority|cuEventRecord|cuLaunchHostFunc|cuStreamAddCallback|cuStreamWriteValue|cuStreamWaitValue'
for file in $(grep -lE "^[^/]*\b($calls)" runtime/*.cpp runtime/*.h runtime/*/*.cpp runtime/*/*.h | grep -v '^runtime/library/'); do
  case "$within_the_call$own_streams" in
    *" $file "*) ;;
    *) complain "$file passes streams to the driver: $(grep -nE "\b($calls)" "$file" | head -1)" ;;
  esac
done
exit $bad
