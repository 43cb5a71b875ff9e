"""Every kind of expression on one placement: a, b on gpu[1]; c, d on gpu[2]; e on cpu[1]."""

import math

import pytest
from support import evaluation_problems as c
from support.evaluation_problems import (
    SPAN,
    aggregate,
    arithmetic,
    attribute,
    bind,
    compare,
    device,
    devices,
    diamond,
    element,
    forall,
    glob,
    logic,
    named,
    negated,
    node,
    nodes,
    number,
    on,
    quantity,
    slot,
    text,
    truth,
    v_on_d,
    within,
)

from placedsl.diagnostics import InputError
from placedsl.evaluation.evaluate import evaluate
from placedsl.problem import expressions as core

PLACEMENT = [0, 0, 1, 1, 2]
V, D = slot("v"), slot("d", "device")
TRUE, FALSE = truth(True), truth(False)


def value(body, **changes):
    return evaluate(diamond(objectives=[c.goal(body)], **changes), PLACEMENT).objectives[0]


def holds(body, **changes):
    out = evaluate(diamond(rules=[c.custom(body)], **changes), PLACEMENT)
    assert value(body, **changes) == float(out.feasible)  # a truth as a number is 0 or 1
    return out.feasible


def listed(sort, *positions):
    return core.Listed(tuple((core.Element(sort, p, SPAN),) for p in positions), (sort,), SPAN)


def members(owner, sort):
    return core.Members(owner, sort, ("node",), SPAN)


def count(*binders):
    return value(aggregate("count", binders, TRUE))


@pytest.mark.parametrize(
    ("name", "sorts", "expected"),
    [
        ("nodes", ("node",), 5), ("forward", ("node",), 4), ("backward", ("node",), 1), ("devices", ("device",), 3),
        ("accelerators", ("device",), 2), ("hosts", ("device",), 1), ("gpu", ("device",), 2), ("cpu", ("device",), 1),
        ("tensors", ("tensor",), 4), ("partition:layer", ("group:layer",), 4), ("nothing", ("device",), 0),
    ],
)  # fmt: skip
def test_named_sets(name, sorts, expected):
    assert count(bind("x", named(name, *sorts))) == expected


def test_pairs():
    edges = bind("u v", named("edges", "node", "node"))
    assert count(edges) == 6
    assert value(aggregate("sum", [edges], attribute(slot("u"), "memory"))) == 1 + 1 + 1 + 2 + 3 + 4
    reads = bind("t v", named("reads", "tensor", "node"))
    assert value(aggregate("sum", [reads], attribute(slot("t", "tensor"), "size", "tensor"))) == 300 + 200 + 400 + 800


def test_members():
    part, group = bind("p", listed("part", 1)), bind("g", named("partition:layer", "group:layer"))
    assert count(part, bind("v", members(slot("p", "part"), "part"))) == 1
    assert count(group, bind("v", members(slot("g", "group:layer"), "group:layer"))) == 5
    readers = members(element("tensor", 0), "tensor")
    assert count(bind("v", readers)) == 3  # one an edge
    assert holds(within(node(2), readers))
    assert not holds(within(node(3), readers))


def test_enumerations():
    assert count(bind("d", listed("device", 0, 2, 0))) == 2


def test_own_sets_and_picks():
    heavy = nodes("w", compare(attribute(slot("w"), "memory"), ">=", number(3)))
    wide = bind("u v", named("edges", "node", "node"), within(slot("u"), named("heavy")))
    sets = {name: core.Comprehension((b,), SPAN) for name, b in (("heavy", heavy), ("wide", wide))}
    assert value(aggregate("count", [bind("x", named("heavy"))], TRUE), sets=sets) == 3
    assert value(aggregate("sum", [bind("x y", named("wide", "node", "node"))], attribute(slot("y"), "memory")),
                 sets=sets) == 4 + 5  # fmt: skip
    pick = core.Pick(named("heavy"), number(2), "node", SPAN)
    assert value(attribute(pick, "memory"), sets=sets) == 4
    with pytest.raises(InputError, match="3 elements"):
        value(attribute(core.Pick(named("heavy"), number(4), "node", SPAN), "memory"), sets=sets)


def test_attributes():
    tensor = element("tensor", 2)
    assert value(attribute(node(2), "time", on=device(2))) == 30
    assert holds(negated(attribute(node(3), "supported", on=device(2))))
    assert holds(attribute(node(4), "backward"))
    assert value(attribute(tensor, "transfer", "tensor", device(1))) == 0.125
    assert value(attribute(tensor, "transfer", "tensor", device(2))) == 0
    assert value(attribute(attribute(tensor, "producer", "tensor"), "memory")) == 3
    assert value(attribute(device(0), "price", "device")) == 2
    assert math.isnan(value(attribute(device(1), "price", "device")))
    assert value(attribute(attribute(element("group:layer", 1), "first", "group:layer"), "memory")) == 2
    for name, text_of in (("name", "gpu[2]"), ("family", "gpu"), ("kind", "accelerator")):
        assert holds(compare(attribute(device(1), name, "device"), "==", text(text_of), "text"))
    assert holds(compare(attribute(node(2), "id"), "==", text("2"), "text"))
    assert holds(compare(attribute(node(2), "name"), "==", text("c"), "text"))


def test_arithmetic():
    for operator, expected in (("+", 9), ("-", 3), ("*", 18), ("/", 2)):
        assert value(arithmetic(number(6), operator, number(3))) == expected
    with pytest.raises(InputError, match="division by zero"):
        value(arithmetic(number(1), "/", quantity("traffic", device(1), device(0))))
    with pytest.raises(InputError, match="an infinite number has no remainder"):
        value(arithmetic(number(math.inf), "mod", number(2)))


def test_nothing_times_infinity():
    time = attribute(V, "time", on=D)
    everywhere = aggregate("sum", [nodes(), devices()], arithmetic(time, "*", v_on_d()))
    assert value(everywhere) == 1 + 2 + 3 + 4 + 50
    missing = arithmetic(attribute(node(1), "flops"), "*", number(0))
    assert math.isnan(value(missing))


def test_aggregates():
    memory = attribute(V, "memory")
    on_first = nodes("v", on(V, device(0)))
    assert value(aggregate("sum", [nodes()], memory)) == 15
    assert value(aggregate("max", [on_first], memory)) == 2
    assert value(aggregate("min", [nodes()], memory)) == 1
    assert value(aggregate("count", [nodes(), devices()], v_on_d())) == 5
    assert value(aggregate("sum", [nodes(), devices("d", v_on_d())], attribute(D, "memory", "device"))) == math.inf
    with pytest.raises(InputError, match="max of nothing"):
        value(aggregate("max", [nodes("v", FALSE)], memory))
    with pytest.raises(InputError, match="min of nothing"):
        value(aggregate("min", [nodes("v", FALSE)], memory))
    assert value(aggregate("sum", [nodes("v", FALSE)], memory)) == 0
    assert math.isnan(value(aggregate("max", [nodes()], attribute(V, "flops"))))


def test_inner_binders_see_outer_ones_and_may_hide_them():
    inner = aggregate("count", [nodes("w", compare(attribute(slot("w"), "memory"), "<", attribute(V, "memory")))], TRUE)
    assert value(aggregate("sum", [nodes()], inner)) == 0 + 1 + 2 + 3 + 4
    hiding = aggregate("count", [nodes("v", on(V, device(0)))], TRUE)
    body = arithmetic(hiding, "*", attribute(V, "memory"))
    assert value(aggregate("sum", [nodes()], body)) == 2 * 15


def test_largest_and_conditional():
    items = (number(3), quantity("load", device(0)), number(1))
    assert value(core.Largest("max", items, SPAN)) == 3.75
    assert value(core.Largest("min", items, SPAN)) == 1
    empty = aggregate("max", [nodes("v", FALSE)], number(1))
    assert value(core.Conditional(TRUE, number(1), empty, SPAN)) == 1
    assert value(core.Conditional(FALSE, empty, number(2), SPAN)) == 2
    assert holds(core.Conditional(TRUE, TRUE, FALSE, SPAN))


def test_logic():
    for operator, table in (("and", "0001"), ("or", "0111"), ("=>", "1101")):
        got = "".join(
            str(int(holds(logic(operator, truth(a), truth(b))))) for a in (False, True) for b in (False, True)
        )
        assert got == table
    assert holds(negated(FALSE))
    assert not holds(negated(TRUE))


def test_comparisons_of_other_kinds():
    assert holds(compare(on(node(0), device(0)), "==", on(node(1), device(0)), "truth"))
    assert holds(compare(on(node(0), device(0)), "!=", on(node(2), device(0)), "truth"))
    assert holds(compare(node(1), "==", node(1), "element"))
    assert holds(compare(node(1), "!=", node(2), "element"))
    layer = attribute(node(3), "layer")
    assert not holds(compare(layer, "==", text("in"), "text"))
    assert not holds(compare(layer, "==", text(""), "text"))
    assert not holds(compare(layer, "!=", text("in"), "text"))


def test_globs():
    patterns = {"mid.*": 2, "mid.?": 2, "*": 3, "in": 1, "MID*": 0, "mid": 0, "": 0}
    for pattern, expected in patterns.items():
        assert value(aggregate("count", [nodes()], glob(attribute(V, "layer"), pattern))) == expected


def test_forall_over_nothing_holds():
    assert holds(forall([nodes("v", FALSE)], FALSE))
    assert not holds(forall([nodes()], on(V, device(0))))


@pytest.mark.parametrize("operator", ["<=", ">=", "<", ">", "==", "!="])
def test_comparisons_with_nan_are_false(operator):
    assert not holds(compare(attribute(node(1), "flops"), operator, number(1)))
    placed = arithmetic(attribute(node(1), "flops"), "*", on(node(1), device(0)))
    assert not holds(compare(placed, operator, number(1)))


def loads_against(operator, right):
    """load(gpu[1]), which is 3.75 and depends on the placement, against a number."""
    return holds(compare(quantity("load", device(0)), operator, number(right)))


def test_the_tolerance_applies_to_what_the_placement_decides():
    above, well_above = 3.75 * (1 + 1e-10), 3.75 * (1 + 1e-8)
    assert loads_against(">=", above)
    assert loads_against("==", above)
    assert not loads_against("!=", above)
    assert not loads_against("==", well_above)
    assert not loads_against(">=", well_above)
    assert not loads_against("<", above)  # what is the same is not less
    assert loads_against("<", well_above)
    assert not loads_against("<=", 3.75 * (1 - 1e-8))
    assert not loads_against("<=", -math.inf)
    assert not loads_against("==", math.inf)
    assert loads_against("<=", math.inf)
    assert not holds(compare(number(1), ">=", number(1 + 1e-10)))  # data are compared exactly


def test_the_tolerance_follows_the_scale():
    microseconds = {"time": [[1e-6] * 3] * 5, "transfer": [0] * 4}
    load = quantity("load", device(0))
    assert not holds(compare(load, "<=", number(1.999e-6)), **microseconds)
    assert holds(compare(load, "<=", number(2e-6)), **microseconds)
    picoseconds = {"time": [[1.0005e-12] * 3] * 5, "transfer": [0] * 4}
    assert not holds(compare(load, "<=", number(2e-12)), **picoseconds)
    assert holds(compare(load, "<=", number(2.001e-12)), **picoseconds)


def test_the_tolerance_follows_the_terms_that_cancel():
    thirds = {"time": [[0.1] * 3, [0.2] * 3, [0.3 * (1 + 1e-12)] * 3, [0] * 3, [0] * 3], "transfer": [0] * 4}
    one, other = quantity("load", device(0)), quantity("load", device(1))
    apart = arithmetic(other, "-", one)
    assert value(apart, **thirds) > 1e-13
    assert holds(compare(apart, "==", number(0)), **thirds)
    assert holds(compare(core.Largest("max", (apart, number(0)), SPAN), "<=", number(0)), **thirds)
    assert not holds(compare(apart, "<=", number(-1e-8)), **thirds)
    assert not holds(compare(apart, ">", number(0)), **thirds)


def test_whole_numbers_are_exact():
    sizes = {"memory": [2.0**34, 1.0, 1.0, 1.0, 1.0]}
    held = quantity("memory", device(0))
    assert not holds(compare(held, "<=", number(2.0**34)), **sizes)
    assert holds(compare(held, ">", number(2.0**34)), **sizes)
    assert holds(compare(held, "==", number(2.0**34 + 1)), **sizes)


def test_decisions_have_no_value():
    with pytest.raises(InputError, match="'x' is a variable"):
        value(core.Decision("x", (node(0), device(0)), SPAN))


def test_convex_in_a_formula():
    def convex(d, of="nodes"):
        return core.SetProperty("convex", (), nodes("v") if of == "nodes" else bind("v", named(of)), on(V, d), SPAN)

    assert holds(forall([devices()], convex(D)))
    out = evaluate(diamond(rules=[c.custom(forall([devices()], convex(D)))]), [0, 1, 0, 0, 1])
    (violation,) = out.violations
    assert "2 instances fail" in violation.message
    assert "d=gpu[1]: a path leaves the set and comes back: a -> b -> d" in violation.message
    assert "d=gpu[2]: a path leaves the set and comes back: b -> d -> e" in violation.message
    part = evaluate(diamond(rules=[c.custom(forall([devices()], convex(D, "forward")))]), [0, 0, 0, 1, 0])
    assert part.feasible  # a -> d -> e is no path of the forward part
    whole = evaluate(diamond(rules=[c.custom(forall([devices()], convex(D)))]), [0, 0, 0, 1, 0])
    assert not whole.feasible


def test_paths_of_convex_stay_among_the_nodes_it_speaks_of():
    body = core.SetProperty("convex", (), bind("v", named("forward")), on(V, device(0)), SPAN)
    edges, time = [(0, 1, 0), (1, 2, 1)], [[1, 1, 1]] * 3
    for backward, feasible in (([False, True, False], True), ([False] * 3, False)):
        problem = c.problem_of(edges, [0, 1], time, [0, 0], backward=backward, rules=[c.custom(body)])
        assert evaluate(problem, [0, 1, 0]).feasible == feasible


def pipeline(over, inner=None):
    return c.custom(core.SetProperty("pipeline", (bind("d", named(over, "device")),), inner or nodes(), v_on_d(), SPAN))


def test_pipeline_in_a_formula():
    def broken(rule, placement):
        problem = diamond(rules=[rule], time=[[1, 1, 1]] * 5)
        return [v.message for v in evaluate(problem, placement).violations]

    assert broken(pipeline("devices"), [0, 1, 1, 0, 0]) == [
        "a cycle: gpu[1] -> gpu[2] (a -> b), gpu[2] -> gpu[1] (b -> d)"
    ]
    assert not broken(pipeline("devices"), [0, 0, 1, 1, 2])
    # Only accelerators are in line: a path that leaves one through the host may not come back to it …
    assert broken(pipeline("accelerators"), [0, 2, 2, 0, 0]) == ["a cycle: gpu[1] -> b (a -> b), b -> gpu[1] (b -> d)"]
    # … but the host itself may be left and come back to.
    assert not broken(pipeline("accelerators"), [2, 0, 0, 2, 2])
    assert broken(pipeline("devices"), [2, 0, 0, 2, 2])


def test_sets_of_a_pipeline_may_not_share_nodes():
    rule = c.custom(core.SetProperty("pipeline", (devices(),), nodes(), on(V, device(0)), SPAN))
    (violation,) = evaluate(diamond(rules=[rule]), PLACEMENT).violations
    assert violation.message == "a is in two sets, gpu[1] and gpu[2]"


def test_messages_name_the_first_instances_and_count_the_rest():
    body = forall([nodes(), devices()], compare(v_on_d(), "<=", number(0)))
    (violation,) = evaluate(diamond(rules=[c.custom(body)]), PLACEMENT).violations
    assert violation.rule == "mine"
    assert violation.message.startswith("5 instances fail: v=a, d=gpu[1]: 1 <= 0 does not hold; v=b, d=gpu[1]: ")
    assert violation.amount == 1.0
    many = forall([nodes(), nodes("w")], compare(attribute(V, "memory"), ">", number(9)))
    (violation,) = evaluate(diamond(rules=[c.custom(many)]), PLACEMENT).violations
    assert violation.message.count("v=") == 5
    assert violation.message.endswith("; and 20 more")
    assert violation.amount == 8.0


def test_messages_descend_through_and_and_implications():
    load = compare(quantity("load", D), "<=", number(5))
    body = forall([devices()], logic("=>", within(D, named("gpu", "device")), logic("and", TRUE, load)))
    (violation,) = evaluate(diamond(rules=[c.custom(body)]), PLACEMENT).violations
    assert violation.message == "d=gpu[2]: 7.8125 <= 5 does not hold"
    assert violation.amount == pytest.approx(2.8125)


def test_messages_label_every_sort():
    first = attribute(slot("g", "group:layer"), "first", "group:layer")
    binders = [
        bind("g", named("partition:layer", "group:layer"), compare(first, "==", node(1), "element")),
        bind("p", listed("part", 1)),
        bind("t", listed("tensor", 3)),
    ]  # fmt: skip
    (violation,) = evaluate(diamond(rules=[c.custom(forall(binders, FALSE))]), PLACEMENT).violations
    assert violation.message == "g=layer of b, p=backward, t=tensor of d: does not hold"
    texts = forall([nodes("v", on(V, device(2)))], compare(attribute(V, "layer"), "==", text("in"), "text"))
    (violation,) = evaluate(diamond(rules=[c.custom(texts)]), PLACEMENT).violations
    assert violation.message == 'v=e: nothing == "in" does not hold'
    same = compare(attribute(element("tensor", 0), "producer", "tensor"), "==", node(1), "element")
    (violation,) = evaluate(diamond(rules=[c.custom(same)]), PLACEMENT).violations
    assert violation.message == "a == b does not hold"
