"""Where the data of arrays lives."""

from dovetail._core.runtime.devices.sharding import Sharding as Sharding
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding as SingleDeviceSharding

__all__ = ["Sharding", "SingleDeviceSharding"]
