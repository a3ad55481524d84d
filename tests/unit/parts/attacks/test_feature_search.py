"""Feature search against truths found otherwise: all points of small tables, the leaves of trees, planted rules."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from advrisk.core.errors import ModelError
from advrisk.engine import Goal, Model, Noise, Probe, Space, Task
from advrisk.parts.attacks import attacks, feature_search
from advrisk.testing import toys

SEARCH = attacks.get("feature-search")


def labelling(rule, features):
    """A model that answers with class numbers and nothing else."""

    def answer(x):
        assert not x.requires_grad
        return rule(x).long()

    return Model("rule", answer, "labels", (features,), 2, (0, 1), digest="rule")


def probe_for(model, x0, space, norm, *, keep="smallest", keys=None, **task):
    """A probe, and the record of what the model is asked through it."""
    model, record = toys.recorded(model)
    reference = model.ask(x0)
    record.passes.clear()
    settings = {"eps": None, "within_eps": False} | task
    noise = Noise(list(range(len(x0)) if keys is None else keys))
    return Probe(model, Task(x0, Goal(reference), space, norm, keep=keep, **settings), noise), record


def attacked(model, x0, space, norm, *, name="feature-search", params=None, **task):
    probe, record = probe_for(model, x0, space, norm, **task)
    part = attacks.get(name)
    part.function(probe, **part.bind(params or {}))
    assert not probe.memory.failed
    return probe, record


def settled(model, x0, space, norm):
    """Where each sample is when features are put back and values drawn in, before any swap; the queries of start and
    of that.
    """
    points, queries = [], []
    for row in range(len(x0)):
        probe, _ = probe_for(model, x0[[row]], space, norm, keys=[row])
        search = feature_search._Search(probe, 100_000, 10)
        search.start()
        n_start = int(probe.memory.n_forward)
        while search.task[0] != feature_search._SWAP:
            assert search.step()
        points.append(search.x)
        queries.append((n_start, int(probe.memory.n_forward) - n_start))
    return torch.cat(points).view_as(x0), torch.tensor(queries)


class TestSmallTables:
    """Six features of four values each: every one of the 4096 points is looked at to know the truth."""

    POINTS = torch.tensor(list(product(range(4), repeat=6)), dtype=torch.float32)
    SPACE = Space(
        low=torch.zeros(6),
        high=torch.full((6,), 3.0),
        scale=torch.tensor([1.0, 2.0, 0.5, 1.0, 1.0, 1.0]),
        integer=torch.arange(6) < 4,
        category=torch.arange(6) >= 4,
    )

    @staticmethod
    def rules(seed):
        """Class 1 where any of three rules holds: three features, each with one of two values."""
        generator = np.random.default_rng(seed)
        features = [generator.choice(6, 3, replace=False) for _ in range(3)]
        half = np.tile([True, True, False, False], (3, 1))
        allowed = [torch.tensor(generator.permuted(half, axis=1)) for _ in range(3)]

        def rule(x):
            held = [
                torch.stack([mask[x[:, feature].long()] for feature, mask in zip(which, masks, strict=True)]).all(0)
                for which, masks in zip(features, allowed, strict=True)
            ]
            return torch.stack(held).any(0)

        return labelling(rule, 6)

    def truth(self, model, x0, norm):
        labels, own = model.ask(self.POINTS), model.ask(x0)
        away = (self.POINTS - x0[:, None]).abs()
        away = torch.where(self.SPACE.category, (away > 0).float(), away / self.SPACE.scale)
        size = (away > 0).sum(2).float() if norm == "l0" else away.sum(2)
        return size.masked_fill(labels == own[:, None], torch.inf).amin(1)

    @pytest.mark.parametrize("norm", ["l0", "l1"])
    def test_comes_to_the_least_change(self, norm):
        """The same on nine of ten samples, with a quarter of the queries that looking at every point takes."""
        exact = []
        for seed in range(3):
            model, x0 = self.rules(seed), self.POINTS[torch.randperm(4096, generator=rng(seed))[:40]]
            probe, _ = attacked(model, x0, self.SPACE, norm, params={"queries": 1000})
            found = self.SPACE.distance(probe.memory.kept, x0, norm)
            least = self.truth(model, x0, norm)
            assert probe.memory.success.all()
            assert (found >= least - 1e-6).all()
            assert (found <= 2 * least + 1e-6).all()
            exact.append((found <= least + 1e-6).double().mean())
        assert min(exact) >= 0.9

    @pytest.mark.parametrize("norm", ["l0", "l1"])
    @pytest.mark.parametrize("feature", range(6))
    def test_one_feature_that_decides_is_found_exactly(self, norm, feature):
        """A number of at least 2; of the categories, one of four codes."""
        model = labelling(lambda x: x[:, feature] == 3 if feature >= 4 else x[:, feature] >= 2, 6)
        x0 = self.POINTS[::200]
        probe, _ = attacked(model, x0, self.SPACE, norm, params={"queries": 300})
        assert torch.equal(self.SPACE.distance(probe.memory.kept, x0, norm), self.truth(model, x0, norm))

    @pytest.mark.parametrize("norm", ["l0", "l1"])
    def test_nothing_is_asked_that_is_not_allowed(self, norm):
        still = replace(self.SPACE, immutable=torch.tensor([True, False, False, False, True, False]))
        x0 = self.POINTS[::128]
        for row in range(len(x0)):
            _, record = attacked(self.rules(row), x0[[row]], still, norm, params={"queries": 60}, keys=[row])
            asked = torch.cat([x for x, _ in record.passes])
            assert (asked[:, [0, 4]] == x0[row, [0, 4]]).all()
            assert (asked[:, :, None] == torch.arange(4.0)).any(2).all()
            assert (asked != x0[row]).any(1).all(), "the clean input is known"

    def test_a_search_at_the_least_change_there_can_be_is_over(self):
        """In l0 one feature, in l1 one step of half a unit (the scale of feature 1 is 2)."""
        model = labelling(lambda x: x[:, 1] >= 2, 6)
        x0 = torch.tensor([[0.0, 1, 0, 0, 0, 0]])
        for norm, least in (("l0", 1.0), ("l1", 0.5)):
            probe, _ = attacked(model, x0, self.SPACE, norm)
            assert self.SPACE.distance(probe.memory.kept, x0, norm) == least
            assert probe.memory.n_forward < 300

    def test_a_search_without_anything_left_to_try_ends(self):
        """One feature is needed; the other is cheaper, but by less than a swap must gain."""
        whole = torch.tensor([True, True])
        space = Space(torch.zeros(2), torch.ones(2), torch.tensor([1 / 4.97, 1 / 5]), integer=whole)
        probe, _ = attacked(labelling(lambda x: x[:, 1] > 0, 2), torch.zeros(1, 2), space, "l1")
        assert space.distance(probe.memory.kept, torch.zeros(1, 2), "l1") == 5
        assert probe.memory.n_forward < 1000


def rng(seed):
    return torch.Generator().manual_seed(seed)


class TestPutBack:
    @pytest.mark.parametrize("norm", ["l0", "l1"])
    @pytest.mark.parametrize("classes", [2, 5])
    def test_no_feature_that_is_left_can_be_put_back_alone(self, norm, classes):
        """Also where others would have to follow: the classes of a net are no simple rule."""
        model = toys.label_only(toys.conv_net(size=6, classes=classes))
        x0 = toys.images(3, size=6)
        points, _ = settled(model, x0, Space.box(0, 1), norm)
        reference, changed = model.ask(x0), points != x0
        assert (model.ask(points) != reference).all()
        assert changed.sum() > 6
        for place in changed.nonzero():
            row = place[0]
            without = points[row].clone()
            without[tuple(place[1:])] = x0[tuple(place)]
            assert model.ask(without[None]) == reference[row], place

    def test_wide_tables_do_not_cost_a_query_for_each_feature(self):
        """Three of 10,000 features are needed. What lies before, between and behind is put back in groups that grow
        and shrink by two: with log2(10,000) < 14, at most two times 14 queries each; three more tell that it is over.
        """
        needed = torch.tensor([17, 4_321, 9_876])
        model = labelling(lambda x: (x[:, needed] > 0.5).all(1), 10_000)
        points, queries = settled(model, torch.zeros(4, 10_000), Space.box(0, 1), "l0")
        assert all(torch.equal(row.nonzero().squeeze(1), needed) for row in points)
        assert (queries[:, 1] <= 4 * 2 * 14 + 3).all()


class TestDrawIn:
    SPACE = Space(torch.zeros(3), torch.full((3,), 100.0), torch.tensor([1.0, 10.0, 0.1]))

    @pytest.mark.parametrize("feature", range(3))
    def test_a_number_is_brought_to_its_threshold(self, feature):
        """To a thousandth of the distance."""
        model = labelling(lambda x: x[:, feature] > 61.5, 3)
        x0 = torch.full((5, 3), 20.0)
        probe, _ = attacked(model, x0, self.SPACE, "l1")
        least = 41.5 / self.SPACE.scale[feature]
        found = self.SPACE.distance(probe.memory.kept, x0, "l1")
        assert (found > least).all()
        assert (found <= least * 1.002).all()

    def test_whole_numbers_to_the_first_that_will_do(self):
        space = replace(self.SPACE, integer=torch.ones(3, dtype=torch.bool))
        model = labelling(lambda x: x[:, 0] + x[:, 1] > 61.5, 3)
        points, _ = settled(model, torch.full((5, 3), 20.0), space, "l1")
        assert (points[:, :2].sum(1) == 62).all()
        assert (points[:, 2] == 20).all()

    def test_a_change_is_measured_in_units_of_the_scale(self):
        """Feature 0 must move by 5 and feature 1 by 30: in units, 5 and 3."""
        model = labelling(lambda x: (x[:, 0] >= 25) | (x[:, 1] >= 50), 3)
        for scale, cheap in ((torch.tensor([1.0, 10.0, 1.0]), 1), (torch.ones(3), 0)):
            x0 = torch.full((8, 3), 20.0)
            probe, _ = attacked(model, x0, replace(self.SPACE, scale=scale), "l1")
            assert ((probe.memory.kept != x0).nonzero()[:, 1] == cheap).all()

    def test_nothing_is_drawn_in_where_only_the_number_of_features_counts(self):
        """Every value that succeeds is as good as another."""
        points, queries = settled(labelling(lambda x: x[:, 0] > 61.5, 3), torch.full((9, 3), 20.0), self.SPACE, "l0")
        assert points[:, 0].min() > 61.5
        assert points[:, 0].max() > 80
        assert queries[:, 1].max() <= 4


class TestStart:
    SPACE = Space.box(0, 1)

    def test_a_model_that_always_says_the_same_leaves_nothing_to_begin_from(self):
        probe, record = attacked(labelling(lambda x: x[:, 0] < 0, 5), torch.rand(3, 5), self.SPACE, "l0")
        assert probe.memory.no_start.all()
        assert not probe.memory.success.any()
        assert (probe.memory.n_forward == 1000).all()
        assert record.n_rows == 3000

    def test_one_that_fails_does_not_touch_the_others(self):
        """Where feature 4 is 1, and it is immutable, the class is always 0: so for sample 0."""
        model = labelling(lambda x: (x[:, 4] < 1) & (x[:, 0] > 0.5), 5)
        space = replace(self.SPACE, immutable=torch.arange(5) == 4)
        x0 = torch.tensor([[0.2] * 4 + [1.0], [0.2] * 5, [0.3] * 5])
        together, _ = attacked(model, x0, space, "l1", params={"queries": 100})
        assert together.memory.no_start.tolist() == [True, False, False]
        assert together.memory.success.tolist() == [False, True, True]
        apart, _ = attacked(model, x0[1:], space, "l1", params={"queries": 100}, keys=[1, 2])
        assert torch.equal(together.memory.kept[1:], apart.memory.kept)
        assert torch.equal(together.memory.n_forward[1:], apart.memory.n_forward)

    def test_where_nothing_may_change_nothing_is_asked(self):
        for space in (
            replace(self.SPACE, immutable=torch.tensor(True)),
            replace(self.SPACE, high=torch.tensor(0.5), integer=torch.tensor(True)),
        ):
            probe, record = attacked(labelling(lambda x: x[:, 0] > 0, 5), torch.zeros(3, 5), space, "l1")
            assert probe.memory.no_start.all()
            assert record.n_rows == 0

    def test_few_features_come_first(self):
        """Each of the first tries changes one feature and none twice; then two at a time, then four, … and again."""
        x0 = torch.full((1, 8), 0.5)
        _, record = attacked(labelling(lambda x: x[:, 0] < 0, 8), x0, self.SPACE, "l0", params={"tries": 8})
        changed = [(x != 0.5) for x, _ in record.passes[:4]]
        assert [part.sum(1).tolist() for part in changed] == [[size] * 8 for size in (1, 2, 4, 8)]
        assert [part.sum(0).tolist() for part in changed] == [[size] * 8 for size in (1, 2, 4, 8)]
        assert ((record.passes[4][0] != 0.5).sum(1) == 1).all()
        assert not torch.equal(record.passes[4][0], record.passes[0][0])

    def test_another_whole_number_is_drawn_each_as_often(self):
        columns = feature_search._Columns(probe_for(*category_of_five(), "l0")[0])
        share = torch.arange(40)[:, None] / 40
        drawn = columns.drawn(share, torch.tensor([2.0]), torch.tensor(torch.inf)).flatten()
        assert drawn.long().bincount(minlength=5).tolist() == [10, 10, 0, 10, 10]
        far = columns.drawn(torch.tensor([[1.0]]), torch.tensor([4.0]), torch.tensor(torch.inf))
        assert far == 3


def category_of_five():
    space = Space(torch.zeros(1), torch.full((1,), 4.0), torch.ones(1), category=torch.tensor([True]))
    return labelling(lambda x: x[:, 0] > 9, 1), torch.full((1, 1), 2.0), space


class TestQueries:
    MODEL, X0 = toys.label_only(toys.linear().model), toys.linear().inputs(5)
    SPACE = Space.box(-10, 10)

    @pytest.mark.parametrize("norm", ["l0", "l1"])
    @pytest.mark.parametrize("limit", [1, 7, 50, 333])
    def test_neither_limit_is_passed_by_the_models_own_count(self, norm, limit):
        for limits in ({"max_queries": limit}, {"params": {"queries": limit}}):
            probe, record = attacked(self.MODEL, self.X0, self.SPACE, norm, **limits)
            assert record.n_rows == probe.memory.n_forward.sum()
            assert probe.memory.n_forward.max() <= limit
            for row in range(5):
                alone, record = attacked(self.MODEL, self.X0[[row]], self.SPACE, norm, keys=[row], **limits)
                assert record.n_rows == alone.memory.n_forward == probe.memory.n_forward[row]
        if norm == "l1":
            assert (probe.memory.n_forward == limit).all(), "there is always something left to try"

    def test_the_last_point_is_asked_once_more_if_it_counts(self):
        for queries in range(20, 200, 20):
            params = {"queries": queries}
            assert SEARCH.traits.passes(params, 3) == (queries + 1, 0)
            smallest, _ = attacked(self.MODEL, self.X0, self.SPACE, "l1", params=params)
            last, record = attacked(self.MODEL, self.X0, self.SPACE, "l1", keep="last", params=params)
            assert (last.memory.n_forward == queries + 1).all()
            assert torch.equal(record.passes[-1][0], last.memory.kept)
            assert torch.equal(last.memory.success, smallest.memory.success)
            assert torch.equal(last.memory.kept, smallest.memory.kept)

    def test_more_queries_find_no_larger_change(self):
        found = []
        for queries in (30, 100, 300, 1000):
            probe, _ = attacked(self.MODEL, self.X0, self.SPACE, "l1", params={"queries": queries})
            found.append(self.SPACE.distance(probe.memory.kept, self.X0, "l1"))
        assert all((more <= fewer).all() for fewer, more in pairwise(found))
        assert found[-1].mean() < found[0].mean()
        assert (found[-1] >= toys.linear().minimal_distances(self.X0, "l1") * (1 - 1e-4)).all()

    def test_only_labels_are_asked_for(self):
        probe, _ = probe_for(self.MODEL, self.X0, self.SPACE, "l1")
        with pytest.raises(ModelError, match="gives labels only"):
            _ = probe.forward(self.X0, torch.arange(5), gradient=False).scores


class TestTrees:
    """Real tables and scikit-learn's trees, of which the nearest leaf of another class can be computed."""

    @staticmethod
    def table(load, classifier, n=40):
        x, y = load(return_X_y=True)
        x = x.astype(np.float32)
        order = np.random.default_rng(0).permutation(len(x))
        train, test = order[: len(x) // 2], order[len(x) // 2 :]
        fitted = classifier.fit(x[train], y[train])
        right = test[fitted.predict(x[test]) == y[test]][:n]
        model = replace(labelling(lambda z: torch.from_numpy(fitted.predict(z.numpy())), x.shape[1]), n_classes=3)
        space = Space(*(torch.tensor(column) for column in (x.min(0), x.max(0), x.std(0))))
        return fitted, model, torch.tensor(x[right]), space

    @staticmethod
    def boxes(fitted, space):
        """The leaves of a tree: their classes, and the lower (open) and upper bounds of their features."""
        tree = fitted.tree_
        todo, leaves = [(0, space.low.double(), space.high.double())], []
        while todo:
            node, low, high = todo.pop()
            if tree.children_left[node] < 0:
                leaves.append((int(fitted.classes_[tree.value[node, 0].argmax()]), low, high))
                continue
            feature, threshold = tree.feature[node], tree.threshold[node]
            below, above = high.clone(), low.clone()
            below[feature], above[feature] = min(high[feature], threshold), max(low[feature], threshold)
            todo += [(tree.children_left[node], low, below), (tree.children_right[node], above, high)]
        classes, lows, highs = zip(*leaves, strict=True)
        return torch.tensor(classes), torch.stack(lows), torch.stack(highs)

    def least(self, fitted, x0, space, own, norm):
        classes, low, high = self.boxes(fitted, space)
        x = x0.double()[:, None]
        below, above = low - x, x - high
        below = torch.where((low > space.low) & (below == 0), 1e-12, below)  # an open bound is not in the leaf
        away = torch.maximum(below, above).clamp_min(0) / space.scale
        size = (away > 0).sum(2).double() if norm == "l0" else away.sum(2)
        return size.masked_fill(classes == own[:, None], torch.inf).amin(1)

    @pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
    @pytest.mark.parametrize("norm", ["l0", "l1"])
    def test_comes_near_the_nearest_leaf(self, load, norm):
        fitted, model, x0, space = self.table(load, DecisionTreeClassifier(random_state=0))
        probe, _ = attacked(model, x0, space, norm)
        least = self.least(fitted, x0, space, probe.goal.reference, norm)
        ratio = space.distance(probe.memory.kept, x0, norm) / least
        assert (ratio >= 1 - 1e-5).all()
        assert ratio.median() <= 1.002
        assert ratio.mean() <= 1.25

    @pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
    @pytest.mark.parametrize("classifier", [DecisionTreeClassifier, RandomForestClassifier])
    @pytest.mark.parametrize("queries", [200, 600])
    def test_smaller_than_a_walk_along_the_boundary_with_as_many_queries(self, load, classifier, queries):
        """HopSkipJump with fewer points for its first direction than its default, which 200 queries do not allow."""
        settings = {"n_estimators": 20} if classifier is RandomForestClassifier else {}
        _, model, x0, space = self.table(load, classifier(random_state=0, **settings))
        walk, _ = attacked(
            model, x0, space, "l2", name="hopskipjump", max_queries=queries, params={"initial_evaluations": 20}
        )
        for norm in ("l0", "l1"):
            probe, _ = attacked(model, x0, space, norm, max_queries=queries)
            assert probe.memory.success.sum() >= walk.memory.success.sum()
            both = probe.memory.success & walk.memory.success
            mine, theirs = (space.distance(part.memory.kept, x0, norm)[both] for part in (probe, walk))
            assert mine.mean() < theirs.mean()
            assert (mine <= theirs).double().mean() > 0.75
