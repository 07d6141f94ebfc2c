// Two things that operations on tensors with a CUDA device ask for: the guard, which says which device is the current one,
// and the hooks, which say that there is a device. Nothing here computes. A CPU build of PyTorch lacks both. Those of a
// build for CUDA look for a driver, and are replaced.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

const c10::Device only_device(c10::DeviceType::CUDA, 0);
const c10::Stream only_stream(c10::Stream::DEFAULT, only_device);

struct OneDeviceGuard : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return only_device.type(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device getDevice() const override { return only_device; }
  c10::Device exchangeDevice(c10::Device) const override { return only_device; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return only_stream; }
  c10::Stream getDefaultStream(c10::Device) const override { return only_stream; }
  c10::Stream getNewStream(c10::Device, int) const override { return only_stream; }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return only_stream; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
};

} // namespace

namespace at {

struct OneDeviceHooks : CUDAHooksInterface {
  explicit OneDeviceHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool isBuilt() const { return true; } // PyTorch 2.6 lacks this one and the next
  bool isAvailable() const { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  int getNumGPUs() const override { return 1; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex current_device() const override { return 0; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  void deviceSynchronize(DeviceIndex) const override {}
};

// PyTorch's own hooks, which come later, have a lower priority.
C10_REGISTER_TYPED_CLASS_WITH_PRIORITY(CUDAHooksRegistry, "CUDAHooks", c10::REGISTRY_PREFERRED, OneDeviceHooks);

} // namespace at

// Of several guards, the last one counts: call this when PyTorch is loaded.
extern "C" void register_guard() {
  static const OneDeviceGuard guard;
  const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::CUDA, &guard);
}
