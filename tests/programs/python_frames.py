# Allocates from Python functions of many sorts, each block of another size, and prints for each the Python stack as the
# interpreter itself tells it: "SIZE function file line; ...", innermost first.
import asyncio
import ctypes
import sys
import threading

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
sizes = iter(range(1000, 100000))
lock = threading.Lock()


def told(lines=0):  # so far below the call
    frame, out = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        out.append("%s %s %d" % (getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno + lines))
        lines = 0
        frame = frame.f_back
    size = next(sizes)
    print(size, "; ".join(out))
    return size


def direct():
    p = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(told()))


def spread_over_lines():
    p = ctypes.c_uint64()
    cuda.cuMemAlloc_v2(
        ctypes.byref(p),
        ctypes.c_size_t(told(-2)))


def generator():
    p = ctypes.c_uint64()
    yield 1
    yield cuda.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(told()))


class Layer:
    def __call__(self, n):
        return self.forward(n)

    def forward(self, n):
        if n == 0:
            return direct()
        return [self(n - 1) for _ in range(1)]

    @property
    def größe(self):
        return direct()


async def coroutine():
    await asyncio.sleep(0)
    direct()


def through_native():  # a native function that calls back
    list(map(lambda _: direct(), [1]))
    sorted([2], key=lambda _: direct())


def far_down():  # many lines below the start of its code
    x = 0
    x += 1




























































































































































    x += 1
    direct()


def deep(n):
    return deep(n - 1) if n else direct()


def in_thread():
    cuda.cuCtxSetCurrent(context)
    with lock:
        direct()


assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
direct()
spread_over_lines()
for _ in generator():
    pass
Layer()(3)
Layer().größe
asyncio.run(coroutine())
through_native()
far_down()
deep(9)
exec(compile("def made():\n\n  direct()\nmade()", "<made up>, \"quoted\"", "exec"))
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
