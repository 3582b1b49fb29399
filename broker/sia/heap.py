"""Many small priority queues over one set of jobs, without allocation: skew heaps linked through job indices.

A job is in at most one heap of a `Heap` at a time; a heap is named by its root (-1: empty), which the owner keeps.
Order: `first`, then `second`, then the job's index. All operations are O(log n) amortised (Sleator and Tarjan 1986).
"""

from dataclasses import dataclass

from broker.sia.compiling import kernel


@dataclass(slots=True)
class Node:
    first: float = 0.0
    second: float = 0.0
    left: int = -1
    right: int = -1
    up: int = -1


Heap = list[Node]


@kernel
def heap_less(h: Heap, a: int, b: int) -> bool:
    if h[a].first != h[b].first:
        return h[a].first < h[b].first
    if h[a].second != h[b].second:
        return h[a].second < h[b].second
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
            h[tail].left = a
        h[a].up = tail
        tail = a
        rest = h[a].right
        h[a].right = h[a].left
        a = rest
    last = b if a == -1 else a
    if tail == -1:
        root = last
    else:
        h[tail].left = last
    if last != -1:
        h[last].up = tail
    return root


@kernel
def heap_push(h: Heap, root: int, node: int, first: float, second: float) -> int:
    """New root."""
    h[node].first = first
    h[node].second = second
    h[node].left = -1
    h[node].right = -1
    h[node].up = -1
    return heap_merge(h, root, node)


@kernel
def heap_remove(h: Heap, root: int, node: int) -> int:
    """New root without `node`, which must be in the heap; the root itself is removed in the same way."""
    parent = h[node].up
    rest = heap_merge(h, h[node].left, h[node].right)
    if rest != -1:
        h[rest].up = parent
    if parent == -1:
        return rest
    if h[parent].left == node:
        h[parent].left = rest
    else:
        h[parent].right = rest
    return root
