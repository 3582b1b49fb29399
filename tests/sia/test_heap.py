"""Skew heaps against sorted lists."""

import random

from broker.sia.heap import Node, heap_push, heap_remove


def test_many_heaps_over_one_set_of_nodes() -> None:
    rng = random.Random(1)
    nodes = [Node() for _ in range(60)]
    roots, members = [-1, -1, -1], [dict[int, tuple[float, float, int]]() for _ in range(3)]
    for _ in range(5000):
        node = rng.randrange(60)
        home = next((k for k in range(3) if node in members[k]), None)
        if home is None:
            home, key = rng.randrange(3), (float(rng.randint(0, 9)), float(rng.randint(0, 9)), node)
            members[home][node] = key
            roots[home] = heap_push(nodes, roots[home], node, key[0], key[1])
        else:
            del members[home][node]
            roots[home] = heap_remove(nodes, roots[home], node)
        for root, inside in zip(roots, members, strict=True):
            assert root == (min(inside.values())[2] if inside else -1)
