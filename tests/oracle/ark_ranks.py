"""All ranks of an ARK model in one process: communication and synchronisation.

A rank runs until it must wait, then the next one does, in order of rank, until all are done.

* `Send` copies into the peer's buffer that receives under the tag, in the box of its stand-in here;
  `Recv` waits until that has happened, and computes nothing. `SendDone` does nothing.
* A packet is 32 bits of payload and 32 bits of flag; `RecvPacket` and `RecvReduceSendPacket` wait
  until everything they read carries their flag.
* `RecvReduceSend` and its packet form wait for every peer, add what they wrote into its slots of the
  scratch buffer, peers in order, and write the sum here and to each peer.
* `DeviceSync` waits until every rank has come to as many of them.
"""
import numpy as np

from ark_memory import is_local, ops_of
from ark_ops import ModelError, STORAGE, evaluate, narrow, widen

SENDS = {"Send": 0, "SendPacket": 0, "RecvReduceSend": 1, "RecvReduceSendPacket": 1}
COMMUNICATION = {*SENDS, "SendDone", "Recv", "RecvPacket", "DeviceSync"}


class Rank:
    """One rank of the world: its model, its memory, and how often it has synchronised."""

    def __init__(self, model, memory):
        self.model, self.memory, self.number = model, memory, model["Rank"]
        self.synchronised = 0


class Wait:
    """What a rank waits for."""

    def __init__(self, what, ready):
        self.what, self.ready = what, ready


class World:
    """Every rank, and the number of pending writes of each (from, to, tag)."""

    def __init__(self, ranks, accumulate=None):
        self.ranks = {rank.number: rank for rank in ranks}
        self.accumulate, self.arrived = accumulate, {}
        for rank in ranks:
            self.check(rank)

    # Tags

    def check(self, rank):
        """Checks that every tag has its counterpart, before anything runs."""
        for op in ops_of(rank.model):
            for remote in remotes(op):
                self.target(rank, op, remote)
            for peer, tag in sources(op):
                if not self.is_sent(peer, rank.number, tag):
                    raise ModelError(f"{named(rank, op)}: rank {peer} never sends under tag {tag}")

    def target(self, rank, op, remote):
        """The peer, the buffer there that receives what this stand-in is written with, the tag."""
        peer = self.ranks.get(remote["Buffer"]["Rank"])
        if peer is None:
            raise ModelError(f"{named(rank, op)}: there is no rank {remote['Buffer']['Rank']}")
        tags = [tag for to, tag in remote["Buffer"]["RecvTags"] if to == -1]
        found = {
            (tensor["Buffer"]["Id"], tag)
            for other in ops_of(peer.model)
            for tensor in other["ReadTensors"] + other["WriteTensors"] + other["ResultTensors"]
            if is_local(peer.model, tensor)
            for tag in tags if [rank.number, tag] in tensor["Buffer"]["RecvTags"]
        }
        if len(found) != 1:
            number = "no buffer" if not found else "several buffers"
            what = f"{number} of rank {peer.number} receive under tag {tags} from this rank"
            raise ModelError(f"{named(rank, op)}: {what}")
        return (peer, *found.pop())

    def is_sent(self, peer, to, tag):
        if peer not in self.ranks:
            return False
        return any(
            remote["Buffer"]["Rank"] == to and [-1, tag] in remote["Buffer"]["RecvTags"]
            for op in ops_of(self.ranks[peer].model) for remote in remotes(op)
        )

    # Running

    def run(self):
        programs = {number: self.program(rank) for number, rank in sorted(self.ranks.items())}
        waits = {number: None for number in programs}
        while programs:
            before = {number: wait for number, wait in waits.items() if wait}
            moved = [number for number in list(programs) if self.advance(number, programs, waits)]
            if not moved:
                stuck = "; ".join(f"rank {n} waits for {w.what}" for n, w in before.items())
                raise ModelError(f"every rank waits: {stuck}")

    def advance(self, number, programs, waits):
        """Runs one rank until it has to wait; returns whether it made progress."""
        moved = False
        while waits[number] is None or waits[number].ready():
            moved = True
            waits[number] = next(programs[number], None)
            if waits[number] is None:
                del programs[number]
                return True
        return moved

    def program(self, rank):
        """The ops of a rank; yields what it waits for."""
        for op in ops_of(rank.model):
            if op["Type"] not in COMMUNICATION:
                evaluate(op, rank.memory, self.accumulate)
                continue
            for peer, tag in sources(op):
                key = (peer, rank.number, tag)
                text = f"rank {peer}, tag {tag}, at {op['Name']}"
                yield Wait(text, lambda key=key: self.arrived.get(key, 0) > 0)
                self.arrived[key] -= 1
            if op["Type"] == "DeviceSync":
                yield self.synchronise(rank, op)
            self.communicate(rank, op)

    def synchronise(self, rank, op):
        rank.synchronised += 1
        count = rank.synchronised
        ready = lambda: all(peer.synchronised >= count for peer in self.ranks.values())
        return Wait(f"all ranks, at {op['Name']}", ready)

    def communicate(self, rank, op):
        kind, memory = op["Type"], rank.memory
        if kind in ("Send", "SendPacket"):
            self.send(rank, op, op["WriteTensors"][0], memory.view(op["ReadTensors"][0]))
        elif kind == "RecvPacket":
            output, (scratch,) = op["WriteTensors"][0], op["ReadTensors"][1:]
            payload = unpack(memory.view(scratch), op, memory.view(output).nbytes)
            values = payload.view(STORAGE[output["DataType"]])
            memory.view(output)[...] = values.reshape(output["Shape"])
        elif kind in ("RecvReduceSend", "RecvReduceSendPacket"):
            self.reduce(rank, op)

    def reduce(self, rank, op):
        (given, scratch), output, memory = op["ReadTensors"], op["WriteTensors"][0], rank.memory
        dtype, values = given["DataType"], memory.load(given)
        count, peers = values.size, op["Args"]["NPeers"]["UINT32"]
        held = np.ascontiguousarray(memory.view(scratch)).reshape(-1)
        if op["Type"] == "RecvReduceSendPacket":
            itemsize = np.dtype(STORAGE[dtype]).itemsize
            held = unpack(held, op, peers * count * itemsize).view(STORAGE[dtype])
        slots = widen(held[: peers * count], dtype).reshape(peers, *values.shape)
        for slot in slots:
            values = values + slot
            if self.accumulate:
                values = widen(narrow(values, dtype), dtype)
        memory.store(output, values)
        for remote in remotes(op):
            self.send(rank, op, remote, memory.view(output))

    def send(self, rank, op, remote, stored):
        """Writes stored elements to a box on another rank, and notifies its waiters."""
        peer, buffer, tag = self.target(rank, op, remote)
        box = peer.memory.view(remote, buffer)
        elements = np.ascontiguousarray(stored)
        if op["Type"].endswith("Packet"):
            box[...] = pack(elements, op, box.size).reshape(box.shape)
        else:
            box[...] = elements.reshape(box.shape)
        key = (rank.number, peer.number, tag)
        self.arrived[key] = self.arrived.get(key, 0) + 1


def named(rank, op):
    return f"rank {rank.number}: {op['Type']} {op['Name']}"


def remotes(op):
    """The tensors of other ranks that an op writes."""
    return op["WriteTensors"][SENDS[op["Type"]]:] if op["Type"] in SENDS else []


def sources(op):
    """(peer, tag) of every write that an op waits for."""
    kind, reads = op["Type"], op["ReadTensors"]
    if kind == "Recv":
        peer, received = reads[0]["Buffer"]["Rank"], op["WriteTensors"][0]["Buffer"]["RecvTags"]
        sent = [tag for to, tag in reads[0]["Buffer"]["SendTags"] if to == -1]
        tags = [tag for tag in sent if [peer, tag] in received]
        if len(tags) != 1:
            raise ModelError(f"{op['Name']}: {len(tags)} tags join rank {peer} and its tensor")
        return [(peer, tags[0])]
    if kind in ("RecvPacket", "RecvReduceSend", "RecvReduceSendPacket"):
        return [tuple(pair) for pair in reads[1]["Buffer"]["RecvTags"]]
    return []


def pack(elements, op, size):
    """Payload and flag in turn, 32 bits each; `size` bytes of them."""
    payload = elements.reshape(-1).view(np.uint8)
    payload = np.pad(payload, (0, -payload.size % 4)).view(np.uint32)
    if payload.nbytes * 2 != size:
        raise ModelError(f"{op['Name']}: {payload.nbytes * 2} bytes of packets for {size}")
    packets = np.empty((payload.size, 2), np.uint32)
    packets[:, 0], packets[:, 1] = payload, op["Args"]["Flag"]["UINT32"]
    return packets.reshape(-1).view(np.uint8)


def unpack(packets, op, count):
    """The first `count` bytes of payload, all of which must carry the flag."""
    words = np.ascontiguousarray(packets).reshape(-1).view(np.uint32).reshape(-1, 2)
    words = words[: -(-count // 4)]
    flag = op["Args"]["Flag"]["UINT32"]
    if not np.all(words[:, 1] == flag):
        raise ModelError(f"{op['Name']}: packets without flag {flag}")
    return np.ascontiguousarray(words[:, 0]).view(np.uint8)[:count]
