"""The structure of LZF streams, the one compression of HDF5 that nothing checks.

A stream is a series of items. A byte c below 32 is followed by c + 1 bytes as they are. Any other
says: repeat c // 32 + 2 bytes that came before (where c // 32 is 7, the next byte is added), from
c % 32 * 256 + d + 1 bytes ago, where d is the byte that follows.
"""

from typing import Any

from eutely.kernel import kernel


@kernel
def unpacked_size(data: Any) -> int:
    """Return how many bytes an LZF stream (n,) uint8 unpacks to; -1 if it is damaged.

    Unpacks nothing: items must end with the stream, and repeat what is there.
    """
    at, size, count = 0, 0, len(data)
    while at < count:
        control = int(data[at])
        at += 1
        if control < 32:
            at += control + 1
            size += control + 1
            continue
        length = control // 32
        if length == 7:
            if at >= count:
                return -1
            length += int(data[at])
            at += 1
        if at >= count or (control % 32) * 256 + int(data[at]) + 1 > size:
            return -1
        at += 1
        size += length + 2
    return size if at == count else -1
