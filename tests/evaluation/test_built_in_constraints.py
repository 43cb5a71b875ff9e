"""The built-in constraints: what violates them and what their messages name."""

from support.evaluation_problems import INF, built_in, diamond, problem_of

from placedsl.evaluation.evaluate import evaluate


def found(rule, placement, **changes):
    return evaluate(diamond(rules=[rule], **changes), placement).violations


def test_memory():
    (violation,) = found(built_in("memory"), [0, 0, 0, 0, 0])
    assert violation.amount == 5.0
    assert "gpu[1] holds 15 B, 5 B more than its 10 B" in violation.message
    assert not found(built_in("memory"), [0, 0, 0, 0, 1])  # exactly 10


def test_memory_of_a_host_counts_where_it_is_finite():
    time = [[1, 1, 1]] * 5
    assert not found(built_in("memory"), [2] * 5, time=time)
    (violation,) = found(built_in("memory"), [2] * 5, time=time, device_memory=(10.0, 10.0, 14.0))
    assert violation.message.startswith("cpu[1]")


def test_memory_within_rounding_is_no_violation():
    limit = 16 * 2.0**30
    fits = found(built_in("memory"), [0] * 5, memory=[limit / 5 * (1 + 1e-12)] * 5, device_memory=(limit, limit, INF))
    assert not fits
    assert found(built_in("memory"), [0] * 5, memory=[limit / 5 * (1 + 1e-7)] * 5, device_memory=(limit, limit, INF))


def test_whole_bytes_are_exact():
    limit = 16 * 2.0**30
    whole = [limit - 4, 1.0, 1.0, 1.0, 1.0]
    assert not found(built_in("memory"), [0] * 5, memory=whole, device_memory=(limit, limit, INF))
    (violation,) = found(built_in("memory"), [0] * 5, memory=[limit - 3, *whole[1:]], device_memory=(limit, limit, INF))
    assert violation.amount == 1.0


def test_contiguous_names_the_cycle_and_its_pairs():
    (violation,) = found(built_in("contiguous"), [0, 1, 1, 0, 0])
    assert "gpu[1] -> gpu[2] (a -> b), gpu[2] -> gpu[1] (b -> d)" in violation.message
    assert not found(built_in("contiguous"), [0, 0, 1, 1, 1])
    assert not found(built_in("contiguous"), [1, 1, 0, 0, 0])  # devices may come in any order


def test_contiguous_is_stronger_than_convex():
    # Two chains a -> b and c -> d that run through the devices in opposite orders.
    problem = problem_of([(0, 1, 0), (2, 3, 1)], [0, 2], [[1, 1, 1]] * 4, [0, 0],
                         rules=[built_in("contiguous"), built_in("convex")])  # fmt: skip
    (violation,) = evaluate(problem, [0, 1, 1, 0]).violations
    assert violation.rule == "contiguous"
    assert "(a -> b)" in violation.message
    assert "(c -> d)" in violation.message


def test_contiguous_follows_the_pairs_not_the_edges():
    # The backward part runs the other way: pairs (0, 1) and (2, 1) where the edge is 1 -> 2.
    problem = problem_of([(0, 1, 0), (1, 2, 1)], [0, 1], [[1, 1, 1]] * 3, [0, 0], backward=[False, True, True],
                         pairs=[(0, 1), (2, 1)], rules=[built_in("contiguous")])  # fmt: skip
    assert evaluate(problem, [0, 1, 0]).feasible
    reordered = problem_of([(0, 1, 0), (1, 2, 1)], [0, 1], [[1, 1, 1]] * 3, [0, 0], backward=[False, True, True],
                           pairs=[(0, 1), (1, 2)], rules=[built_in("contiguous")])  # fmt: skip
    assert not evaluate(reordered, [0, 1, 0]).feasible


def test_contiguous_over_three_devices():
    problem = problem_of([(0, 1, 0), (2, 3, 1), (4, 5, 2)], [0, 2, 4], [[1, 1, 1]] * 6, [0, 0, 0],
                         rules=[built_in("contiguous")])  # fmt: skip
    (violation,) = evaluate(problem, [0, 1, 1, 2, 2, 0]).violations
    assert violation.message.endswith("gpu[1] -> gpu[2] (a -> b), gpu[2] -> cpu[1] (c -> d), cpu[1] -> gpu[1] (e -> f)")


def test_convex_gives_a_witness():
    (violation,) = found(built_in("convex"), [0, 1, 0, 0, 0])
    assert "leaves gpu[1]" in violation.message
    assert "a -> b -> d (b is on gpu[2])" in violation.message


def test_convex_looks_at_each_part_for_itself():
    # d -> e leaves the forward part; a path a (forward) -> b (backward) -> c (forward) is none of one part.
    problem = problem_of([(0, 1, 0), (1, 2, 1)], [0, 1], [[1, 1, 1]] * 3, [0, 0], backward=[False, True, False],
                         rules=[built_in("convex")])  # fmt: skip
    assert evaluate(problem, [0, 1, 0]).feasible
    both = problem_of([(0, 1, 0), (1, 2, 1)], [0, 1], [[1, 1, 1]] * 3, [0, 0], backward=[True] * 3,
                      rules=[built_in("convex")])  # fmt: skip
    (violation,) = evaluate(both, [0, 1, 0]).violations
    assert "backward part" in violation.message


def test_convex_through_two_outside_nodes():
    chain = problem_of([(0, 1, 0), (1, 2, 1), (2, 3, 2)], [0, 1, 2], [[1, 1, 1]] * 4, [0, 0, 0],
                       rules=[built_in("convex")])  # fmt: skip
    (violation,) = evaluate(chain, [0, 1, 2, 0]).violations
    assert "a -> c -> d" in violation.message


def test_colocated():
    (violation,) = found(built_in("colocated", "layer"), [0, 0, 1, 1, 1])
    assert violation.rule == "colocated by layer"
    assert violation.amount == 1.0
    assert "layer of b are split over 2 devices (gpu[1]: b; gpu[2]: c)" in violation.message
    assert not found(built_in("colocated", "layer"), [0, 1, 1, 0, 2])


def test_violations_of_several_rules_are_all_there():
    rules = [built_in("memory"), built_in("contiguous"), built_in("convex"), built_in("colocated", "layer")]
    out = evaluate(diamond(rules=rules), [0, 1, 0, 0, 0])
    assert [v.rule for v in out.violations] == ["memory", "contiguous", "convex", "colocated by layer"]
    assert not out.feasible
