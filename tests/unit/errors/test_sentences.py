import string

import pytest

from penstock import _core
from penstock._errors.sentences import SENTENCES, sentence

KINDS = dict(_core.problem_kinds())


def test_every_kind_of_problem_has_a_sentence_and_every_sentence_a_kind():
    assert SENTENCES.keys() == KINDS.keys()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_sentence_uses_the_figures_of_its_kind(kind):
    words = SENTENCES[kind]
    if isinstance(words, str):
        used = {field for _, field, _, _ in string.Formatter().parse(words) if field is not None}
        assert {name.partition("[")[0].partition(".")[0] for name in used} <= set(KINDS[kind])
    else:
        names = words.__code__.co_varnames[: words.__code__.co_argcount]
        assert set(names) == set(KINDS[kind])


def test_a_problem_may_have_another_inside():
    inner = ("Regions.NothingToRepeat", {})
    assert sentence(inner) in sentence(("Regions.PositionalWindow", {"problem": inner}))
