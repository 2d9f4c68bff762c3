# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What programs that make frames share.
import struct


def fold(data):
    """The sum of its words as a checksum has it; 0xffff of what has its own in it."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total


def checksum(data):
    return ~fold(data) & 0xffff
