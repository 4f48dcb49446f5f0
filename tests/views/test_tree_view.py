"""The tree: complete, parents before children, no two nodes in one place."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpro.testing.sample_run import sample_events
from kernelpro.views.focus_view import focus_view
from kernelpro.views.run import fold
from kernelpro.views.tree_view import tree_view


@settings(max_examples=25, deadline=None)
@given(nodes=st.integers(0, 60), seed=st.integers(0, 10_000))
def test_tree_is_complete_and_tidy(nodes, seed):
    run = fold(sample_events(nodes=nodes, seed=seed))
    view = tree_view(run)
    place = {node.id: index for index, node in enumerate(view.nodes)}
    assert set(place) == set(run.nodes)
    assert len({(n.depth, n.row) for n in view.nodes}) == len(view.nodes)
    for node in view.nodes:
        assert 0 <= node.row < view.rows
        assert 0 <= node.depth < view.columns
        if node.parent_id:
            assert place[node.parent_id] < place[node.id]
    assert [n.id for n in view.nodes if n.is_best] == ([run.best_id] if run.best_id else [])


@settings(max_examples=40, deadline=None)
@given(nodes=st.integers(0, 60), seed=st.integers(0, 10_000), limit=st.integers(1, 70))
def test_focus_shows_the_best_path_and_counts_the_rest(nodes, seed, limit):
    run = fold(sample_events(nodes=nodes, seed=seed))
    view = focus_view(run, limit)
    shown = [row.node.id for row in view.rows]
    assert len(shown) <= limit
    assert len(shown) + view.hidden + sum(row.hidden for row in view.rows) == len(run.nodes)
    if run.best_id:
        assert run.best_id in shown
    if limit >= len(run.nodes):
        assert set(shown) == set(run.nodes)


def test_guides_draw_the_siblings():
    run = fold(sample_events(nodes=30, seed=2))
    rows = focus_view(run, 100).rows
    for row in rows:
        assert len(row.guide) == 3 * row.node.depth
        if row.node.depth:
            last = run.children[row.node.parent_id][-1] == row.node.id
            assert row.guide.endswith("└─ " if last else "├─ ")


def test_a_chain_of_thousands_needs_no_recursion():
    from dataclasses import replace

    events = sample_events(nodes=2, stopped=False)
    asked, done = events[-2], events[-1]
    chain = events[:1]
    for k in range(1, 3001):
        node_id, parent = f"n{k:04d}", f"n{k - 1:04d}" if k > 1 else None
        candidate = replace(done.candidate, id=node_id, parent_id=parent)
        chain.append(replace(asked, asks=(replace(asked.asks[0], id=k, parent_id=parent),)))
        chain.append(replace(done, candidate=candidate, duplicate_of=None,
                             tell=replace(done.tell, ask_id=k, node_id=node_id)))  # fmt: skip
    view = tree_view(fold(chain))
    assert view.columns == 3000
    assert view.rows == 1
