"""Arguments that are committed to different places: what the message says, and its advice."""

from __future__ import annotations

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail.errors import DeviceMismatchError
from dovetail.sharding import SingleDeviceSharding

# The number of a device, and one of its memories.
DEVICE, PINNED, OTHER = (0, "device"), (0, "pinned_host"), (1, "device")

MESSAGES = {
    "devices": (
        (DEVICE, OTHER),
        "committed to different devices: the argument x of add (float32[3]) is on CpuDevice(id=0), "
        "and the argument y of add (float32[3]) is on CpuDevice(id=1). Move one of them with "
        "dovetail.device_put(x, device), or make it without a device",
    ),
    "memories": (
        (DEVICE, PINNED),
        "add gets operands in the memories device and pinned_host of its devices; move them to one "
        "before, with dovetail.device_put(x, dovetail.memory.Space.Device), for example",
    ),
}


def sharding(place):
    number, kind = place
    return SingleDeviceSharding(dt.devices()[number], kind)


def array(place):
    return dt.device_put(np.ones(3, np.float32), sharding(place))


def shape(place):
    return dt.ShapeDtypeStruct((3,), "float32", sharding=sharding(place))


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("argument", [array, shape])
def test_the_message_tells_the_places_apart(name, argument):
    places, text = MESSAGES[name]
    add = dt.jit(lax.add)
    call = add if argument is array else add.lower
    with pytest.raises(DeviceMismatchError) as caught:
        call(*map(argument, places))
    assert text in str(caught.value)


def test_the_advice_helps():
    x, y = array(DEVICE), array(PINNED)
    y = dt.device_put(y, y.sharding.with_memory_kind("device"))
    assert lax.add(x, y).tolist() == [2, 2, 2]
