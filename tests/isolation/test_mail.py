"""Both ends of the mail in one process: through memory files here, through a GPU's memory there."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from kernelpro.isolation.capture import Captured
from kernelpro.isolation.mail import KEPT_BYTES, Mail, Mailbox

DTYPES = ("float32", "bfloat16", "bool", "int64", "complex64", "float8_e4m3fn")


class Post:
    """A referee's and a subject's end, joined."""

    def __init__(self, device: str, device_bytes: int) -> None:
        self.mail = Mail(device, device_bytes)
        inbox, outbox, *shared = self.mail.descriptors
        self.box = Mailbox(
            inbox, outbox, shared=os.dup(shared[0]) if shared else -1,
            device=torch.device(device), device_bytes=self.mail.device_bytes,
        )  # fmt: skip

    def there(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        read = self.box.read(self.mail.send(tensors))
        self.mail.release()
        return read

    def back(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        captured = Captured(list(tensors))
        metas = captured.metas()
        self.mail.make_room(metas)
        captured.write(self.box)
        return self.mail.receive(metas)


@pytest.fixture(
    params=[("cpu", 0), pytest.param(("cuda:0", 8 << 20), marks=pytest.mark.gpu)],
    ids=["file", "gpu"],
)
def post(request: pytest.FixtureRequest) -> Iterator[Post]:
    post = Post(*request.param)
    yield post
    post.mail.close()


def values(dtype: str, device: str = "cpu") -> torch.Tensor:
    bits = torch.randint(0, 2, (3, 56), dtype=torch.uint8, device=device)
    return bits.view(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bit_arrives_both_ways(post: Post, dtype: str) -> None:
    first, second = values(dtype), torch.arange(7.0)[::2]
    got = post.there(first, second)
    assert [t.dtype for t in got] == [first.dtype, second.dtype]
    assert torch.equal(got[0].view(torch.uint8).cpu(), first.view(torch.uint8))
    assert torch.equal(got[1].cpu(), second)
    sent = post.back(first.t(), second)
    assert torch.equal(sent[0].cpu(), first.t().contiguous().reshape(-1).view(torch.uint8))
    assert torch.equal(sent[1].cpu().view(torch.float32), second)


def test_what_was_received_is_a_copy(post: Post) -> None:
    (first,) = post.back(torch.ones(4))
    (second,) = post.back(torch.zeros(4))
    assert first.view(torch.float32).tolist() == [1.0] * 4
    assert second.view(torch.float32).tolist() == [0.0] * 4


def test_nothing_at_all(post: Post) -> None:
    (read,) = post.there(torch.empty(0, 3))
    assert read.shape == (0, 3)
    assert post.there() == []
    assert [t.numel() for t in post.back(torch.empty(2, 0))] == [0]


def test_conjugates_arrive_resolved(post: Post) -> None:
    value = torch.complex(torch.ones(3), torch.ones(3)).conj()
    (read,) = post.there(value)
    assert torch.equal(read.cpu(), value.resolve_conj())


def test_the_file_gives_large_transfers_back() -> None:
    post = Post("cpu", 0)
    post.there(torch.zeros(KEPT_BYTES // 4 + 64))
    assert os.fstat(post.mail.descriptors[0]).st_size == 0
    post.mail.close()


def test_fewer_bytes_than_declared_are_refused() -> None:
    post = Post("cpu", 0)
    metas = Captured([torch.zeros(1000)]).metas()
    post.mail.make_room(metas)
    os.ftruncate(post.mail.descriptors[1], 100)
    with pytest.raises(ValueError, match="shorter than declared"):
        post.mail.receive(metas)
    post.mail.close()


def test_a_machine_without_shared_gpu_memory_says_why() -> None:
    # More than any GPU has; where there is no driver the same answer comes earlier.
    mail = Mail("cuda:0", 1 << 50)
    assert mail.device_bytes == 0 and len(mail.descriptors) == 2
    assert mail.no_device_memory
    mail.close()


@pytest.mark.gpu
def test_a_gpus_tensors_stay_there_and_larger_ones_take_the_file() -> None:
    post = Post("cuda:0", 1 << 20)
    small, large = torch.randn(1000), torch.randn(post.mail.device_bytes // 4 + 1)
    assert post.there(small)[0].is_cuda and post.back(small)[0].is_cuda
    assert not post.there(large)[0].is_cuda and not post.back(large)[0].is_cuda
    assert torch.equal(post.there(large.cuda())[0], large)
    post.mail.close()


@pytest.mark.gpu
def test_the_memory_comes_back() -> None:
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0]
    mail = Mail("cuda:0", 1 << 30)
    assert torch.cuda.mem_get_info()[0] <= before - (1 << 30)
    mail.close()
    assert torch.cuda.mem_get_info()[0] > before - (64 << 20)
