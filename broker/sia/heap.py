"""Many small priority queues over one set of jobs, without allocation: skew heaps linked through job indices.

A job is in at most one heap of a `Heap` at a time; a heap is named by its root (-1: empty), which the owner keeps.
Order: `first`, then `second`, then the job's index. All operations are O(log n) amortised (Sleator and Tarjan 1986).
"""

from typing import NamedTuple

from broker.sia.compiling import kernel


class Heap(NamedTuple):
    first: list[float]
    second: list[float]
    left: list[int]
    right: list[int]
    up: list[int]


@kernel
def heap_less(h: Heap, a: int, b: int) -> bool:
    if h.first[a] != h.first[b]:
        return h.first[a] < h.first[b]
    if h.second[a] != h.second[b]:
        return h.second[a] < h.second[b]
    return a < b


@kernel
def heap_merge(h: Heap, a: int, b: int) -> int:
    """Root of the union of two heaps."""
    root, tail = -1, -1
    while a != -1 and b != -1:
        if heap_less(h, b, a):
            a, b = b, a
        if tail == -1:
            root = a
        else:
            h.left[tail] = a
        h.up[a] = tail
        tail = a
        rest = h.right[a]
        h.right[a] = h.left[a]
        a = rest
    last = b if a == -1 else a
    if tail == -1:
        root = last
    else:
        h.left[tail] = last
    if last != -1:
        h.up[last] = tail
    return root


@kernel
def heap_push(h: Heap, root: int, node: int, first: float, second: float) -> int:
    """New root."""
    h.first[node] = first
    h.second[node] = second
    h.left[node] = -1
    h.right[node] = -1
    h.up[node] = -1
    return heap_merge(h, root, node)


@kernel
def heap_remove(h: Heap, root: int, node: int) -> int:
    """New root without `node`, which must be in the heap; the root itself is removed in the same way."""
    parent = h.up[node]
    rest = heap_merge(h, h.left[node], h.right[node])
    if rest != -1:
        h.up[rest] = parent
    if parent == -1:
        return rest
    if h.left[parent] == node:
        h.left[parent] = rest
    else:
        h.right[parent] = rest
    return root
